"""Refuse an environment whose triage was installed from another checkout: owner.py NAME CHECKOUT."""

import importlib.metadata
import json
import sys
from urllib.parse import unquote, urlsplit

name, checkout = sys.argv[1:]
try:
    source = importlib.metadata.distribution("triage-kb").read_text("direct_url.json")
except importlib.metadata.PackageNotFoundError:
    source = None
owner = unquote(urlsplit(json.loads(source)["url"]).path) if source else checkout
if owner != checkout:
    choices = "Choose another one (make VENV=.venv2 TORCH_VENV=.venv-torch2 …) or remove it."
    sys.exit(f"{name} belongs to the checkout {owner}, so nothing is installed there. {choices}")
