"""HTML text, read."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "link", "input", "rect", "line", "circle", "path"}


class Page(HTMLParser):
    """Tags with their attributes, and words; fails where opens and closes of tags do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    @property
    def tags(self):
        return {tag for tag, _ in self.seen}

    @property
    def ids(self):
        return [attributes["id"] for _, attributes in self.seen if "id" in attributes]

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
