"""The command line: a skin over Engine. Importing it loads nothing; `app` is the whole of it, `shortcut` a way past."""
