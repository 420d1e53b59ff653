"""Answer panels of a notebook from its kernel, over the connection that is there anyway: long recordings by tiles."""

import secrets
from collections import deque
from typing import Any, ClassVar

import anywidget
import traitlets

from regard.errors import RegardError, format_message
from regard.inspect.display.parts import read_part
from regard.inspect.draw.bundle import bundle_modules
from regard.inspect.recording import Recording

MOST = 8  # links that are kept, each with its recording; the panels of older ones show what stands in their cells


class KernelLink(anywidget.AnyWidget):
    """A widget without a view: panels ask it for parts of a recording, by a name that stands in their cell."""

    _esm = (
        f"{bundle_modules('kernel.js')}"
        "export default { initialize: ({ model }) => modules['kernel.js'].connectModel(model) };"
    )
    name = traitlets.Unicode().tag(sync=True)
    links: ClassVar[deque["KernelLink"]] = deque()

    def __init__(self, recording: Recording) -> None:
        super().__init__(name=secrets.token_urlsafe(12))
        self.recording = recording
        self.on_msg(self.answer)
        self.links.append(self)
        if len(self.links) > MOST:
            self.links.popleft().close()

    def answer(self, widget: object, message: Any, buffers: object) -> None:
        """Send a part of the recording, or why there is none."""
        question = message.get("question")
        try:
            content = read_part(self.recording, str(message.get("part")), message.get("values") or {})
        except RegardError as error:
            self.send({"question": question, "error": str(error)})
        except Exception as error:  # whatever it is, the cell gets an answer: silence would look like a dead kernel
            got = f"{type(error).__name__} ({error})"
            told = format_message("kernel", got, "a part of the recording", "make the recording again")
            self.send({"question": question, "error": told})
        else:
            self.send({"question": question}, [content])
