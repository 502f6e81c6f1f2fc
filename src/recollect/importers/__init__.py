"""In and out: our own lossless JSONL, and readers for what other systems write. One reader, one file, one table row."""

from recollect.importers.copying import CopyReport, copy_store
from recollect.importers.exporting import ExportReport, export
from recollect.importers.report import ImportReport, Problem
from recollect.importers.restoring import import_jsonl
from recollect.importers.running import import_source
from recollect.importers.table import IMPORTERS, Importer, sniff
from recollect.importers.utf8 import check_utf8

__all__ = [
    "IMPORTERS",
    "CopyReport",
    "ExportReport",
    "ImportReport",
    "Importer",
    "Problem",
    "check_utf8",
    "copy_store",
    "export",
    "import_jsonl",
    "import_source",
    "sniff",
]
