"""workspace/didChangeConfiguration: new settings, in the message or to be asked for."""

from lsprotocol import types

from mercury_lsp.server.session import MercuryServer


async def did_change_configuration(server: MercuryServer, params: types.DidChangeConfigurationParams) -> None:
    """Take them over."""
    await server.reconfigure(params.settings)
