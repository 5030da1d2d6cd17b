"""initialized: the client listens now."""

from lsprotocol import types

from mercury_lsp.server.server import MercuryServer


async def initialized(server: MercuryServer, params: types.InitializedParams) -> None:
    """Register with the client, ask for its settings and load the model."""
    await server.start()
