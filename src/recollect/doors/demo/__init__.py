"""The demo: six months of a software project, and recalls that show each profile's character side by side."""
