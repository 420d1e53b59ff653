"""The inspector in the browser: a small server, bound to this machine by default, and a page."""
