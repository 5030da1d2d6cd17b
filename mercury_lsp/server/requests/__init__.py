"""One file per request or notification of the client; each only translates."""
