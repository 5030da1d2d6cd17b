"""An engine elsewhere: what `mercury.engine` names. Imported only where a URL is set."""
