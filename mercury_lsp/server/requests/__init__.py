"""One file per request of the client, and one for its notifications; each only translates."""
