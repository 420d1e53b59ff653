"""The reference of the site, in both languages, generated from the code: names, commands, fields and the server."""
