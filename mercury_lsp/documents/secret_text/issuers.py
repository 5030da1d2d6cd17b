"""Tokens that are known by their issuer's prefix or shape, and names of issuers whose tokens have none.

`issuers.txt` states facts that issuers publish and that gitleaks' and trufflehog's public rules collect.
"""

import re
from functools import cache
from importlib import resources

_NAMED = (
    "adafruit|adobe|airtable|algolia|alibaba|amplitude|asana|atlassian|auth0|aws|azure|bitbucket|bittrex|bugsnag|circleci"
    "|cloudflare|codecov|cohere|coinbase|confluence|confluent|contentful|datadog|digitalocean|discord|drone(?:ci)?|dropbox"
    "|etsy|facebook|fastly|finicity|finnhub|flickr|freshbooks|gitter|google|heroku|hubspot|intercom|jfrog|jira|kraken"
    "|kucoin|launchdarkly|linear|linked[_-]?in|lob|looker|mailchimp|mailgun|mattermost|meraki|message[_-]?bird|mixpanel"
    "|netlify|new[_-]?relic|nytimes|okta|opsgenie|pagerduty|paypal|plaid|private[_-]?ai|rapid[_-]?api|rollbar|segment"
    "|sendbird|sentry|shodan|snyk|sonar|sourcegraph|splunk|squarespace|sumo(?:logic)?|todoist|travis|trello|twitch|twitter|vercel"
    "|virustotal|vultr|wakatime|yandex|zendesk"
)
NAMED_ISSUER = re.compile(
    rf"(?:{_NAMED})[\w .-]{{0,24}}?[\"'`\])]{{0,3}}(?:: ?[\w.<>| ]{{1,30}}?)?\s{{0,4}}(?:=>|:=|[=:,>(])"
    r"[\s\"'`(]{0,6}([\w=./+-]{15,})(?![\w(=./+-])",
    re.IGNORECASE,
)
"""An issuer's name with a value, whose group 1 counts if it looks random: its tokens have no prefix."""


@cache
def issuer_pattern() -> re.Pattern[str]:
    """One expression for all tokens of `issuers.txt`; it can match only where no letter or digit precedes."""
    text = resources.files(__package__).joinpath("issuers.txt").read_text("utf-8")
    shapes = [line.split(" ", 1)[1] for line in text.splitlines() if line and not line.startswith("#")]
    return re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(shapes) + ")")
