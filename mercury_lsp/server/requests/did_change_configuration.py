"""workspace/didChangeConfiguration: new settings, in the message or to be asked for."""

from lsprotocol import types

from mercury_lsp.server.server import MercuryServer


async def did_change_configuration(server: MercuryServer, params: types.DidChangeConfigurationParams) -> None:
    """Go over to them."""
    await server.configuration.update(params.settings)
