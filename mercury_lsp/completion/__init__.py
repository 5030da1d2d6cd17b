"""From a context to a suggestion: coalesce, fill, postprocess, type through; and next edits.

`Completer` serves a request: it answers from `TypingThrough` when the user types through a suggestion, else the
`Coalescer` joins the request to a fill under way or starts one. An automatic suggestion is shown if it passes the
silence gate (`silence`). `NextEdits` offers the user's last change for other places.
"""
