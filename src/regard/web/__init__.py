"""The inspector in the browser: a small server, bound to this machine unless told otherwise, and a page."""
