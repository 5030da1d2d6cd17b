"""The context that a fill request carries: text around the cursor and of other files, as blocks and lookup text.

`OpenDocuments` (open_documents.py) owns the documents and one `ContextBuilder` (context.py) for each. The builder cuts
the window around the cursor and asks scope.py for the cursor's syntactic class and for the headers that the window cuts
off. `Workspace` (workspace/) then adds snippets of other files, and `LookupText` (lookup_text.py) adds the text for
n-gram lookup that no window shows.
"""
