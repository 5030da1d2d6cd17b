"""The text around a cursor that a request carries: blocks of the document and of other files."""
