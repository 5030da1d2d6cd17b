"""The names of files and folders that hold secrets.

They cover the lists of Continue, the path rules of gitleaks and gitrob, and exclusions that are published for Copilot,
except names under which ordinary code lies (docs/decisions/privacy.md).
"""

import fnmatch
import re
from pathlib import PurePath


def _words(names: str) -> frozenset[str]:
    return frozenset(names.split())


_ENVIRONMENT = _words(
    ".env .env.* .env-* *.env *.env.* .envrc .flaskenv .renviron* renviron.site .rprofile .rbenv-vars .pam_environment"
)
_KEYS = _words(
    "*.pem *.key *.keys *.p8 *.p12 *.pfx *.pkcs12 *.p7b *.p7c *.crt *.cer *.der *.csr *.jks *.jceks *.keystore"
    " *.truststore *.bks *.ppk *.gpg *.pgp *private*.asc secret*.asc *.age *.ovpn *.cscfg *.rdp *.kdb *.kdbx"
    " *.psafe3 *.keychain *.keychain-db *.agilekeychain *.kwallet *.tblk *.bek *.tpm *.fve *.mobileprovision"
    " *.provisionprofile *.sops.* *.vault *.enc id_rsa* id_dsa* id_ecdsa* id_ed25519* *_rsa *_dsa *_ecdsa *_ed25519"
    " key.txt keys.txt master.key production.key private_key private_key.json private_key.txt private-key"
    " private-key.txt privatekey privatekey.txt authorized_keys known_hosts keyring secring.* pubring.kbx"
)
_CREDENTIALS = _words(
    "credential credential.json credential.y*ml credentials credentials.* .credentials *credentials.json"
    " *credentials.xml *credentials.csv *credentials-config.json client_secret*.json service-account*.json"
    " service_account*.json serviceaccount*.json application_default_credentials.json *-firebase-adminsdk-*.json"
    " firebase-adminsdk*.json google-services.json googleservice-info.plist gcloud*.json auth.json *.token .token"
    " token.json tokens.json token.txt *.secret *.secrets secret secret.* secrets secrets.* .secret .secrets"
    " secret-*.y*ml secrets-*.y*ml *-secret.y*ml *-secrets.y*ml *_secrets.y*ml secret_token.rb password password.txt"
    " passwords passwords.txt passwords.json passwords.y*ml passwords.csv passwd shadow shadow.bak *.htpasswd"
    " *htpasswd* .htaccess_auth .pgpass pgpass.conf .my.cnf .mylogin.cnf .netrc _netrc .netrc.* .git-credentials"
    " .gitcredentials .npmrc .yarnrc .yarnrc.yml .pypirc pip.conf pip.ini .gem-credentials .dockercfg"
    " .dockerconfigjson .boto .s3cfg .s3curl .tugboat .trc .muttrc .esmtprc .msmtprc .fetchmailrc .gitrobrc"
    " .vault-token .vault_pass* vault_pass* vault-password* .terraformrc terraform.rc *.tfvars *.tfvars.json"
    " *.auto.tfvars *.tfstate *.tfstate.* terraform.tfstate* kubeconfig kubeconfig.y*ml *.kubeconfig .wgetrc .curlrc"
    " .lftprc .ftpconfig .remote-sync.json sftp-config.json sftp.json ftpsync.settings .smbcredentials .cifs*"
    " wp-config.php wp-config-*.php localsettings.php configuration.php proftpdpasswd filezilla.xml"
    " recentservers.xml sitemanager.xml ventrilo_srv.ini robomongo.json heroku.json dbeaver-data-sources.xml"
    " webservers.xml knife.rb mongoid.yml database.yml omniauth.rb carrierwave.rb"
    " jenkins.plugins.publish_over_ssh.bapsshpublisherplugin.xml hudson.util.secret credentials.yml.enc"
    " appsettings.json appsettings.*.json local.settings.json web.config *.publishsettings *.pubxml.user"
    " connectionstrings.config docker-compose.override.y*ml nuget.config *.cnf.local settings-security.xml"
    " keystore.properties signing.properties .chef-key logins.json key3.db key4.db signons.sqlite cookies.sqlite"
    " accounts.xml otr.private_key *secrets.json *secret.json *secrets.toml *secrets.env *secrets.properties key.json"
    " *-key.json *_key.json *-sa.json sa.json *serviceaccount*.json service-principal*.json rclone.conf vault.y*ml"
    " *vault.y*ml vault.json *.nmconnection wpa_supplicant*.conf *-secrets sasl_passwd* *.keytab"
    " *chap-secrets* *pap-secrets* *passwords.csv *passwords.txt *passwords.json *passwords.xls*"
    " *credentials.y*ml msmtprc fetchmailrc .mbsyncrc .offlineimaprc .dbshell *.jwk *.jwks *.wallet"
    " wallet.dat auth.txt users.acl znc.conf"
)
_DATA = _words(
    "*.db *.sqlite *.sqlite3 *.sqldump *.sql.gz *.dump *.mdb *.accdb *.mdf *.sdf *.gnucash *.pcap *.pcapng *.cap"
    " *.bak *.backup *.old *.orig *.swp *_history .*_history *.history"
)
SECRET_FILE_PATTERNS = _ENVIRONMENT | _KEYS | _CREDENTIALS | _DATA
"""Patterns, in lower case, of names of files that hold secrets."""

PRIVATE_FOLDERS = _words(
    ".aws .ssh .gnupg .gpg .kube .docker .gcloud .gcp .azure .password-store .secrets .private"
    " .bundle .chef .terraform.d .vault .1password .bitwarden .oci .bluemix .gem .subversion .sops .keys"
    " .credentials .purple .irssi .electrum .bitcoin .mozilla"
)
"""Names, in lower case, of folders that hold secrets, wherever they are."""

SECRET_FOLDERS = PRIVATE_FOLDERS | _words("secrets certs certificates")
"""The same below a workspace folder: the folder itself, and those around it, may have such a name."""

_SECRET = re.compile("|".join(map(fnmatch.translate, sorted(SECRET_FILE_PATTERNS))))


_COPY = re.compile(r"(?:~|\.(?:bak|backup|old|orig|save|saved|copy|tmp|swp|swo|dist|\d{1,3})|#)+\Z")
"""What editors and people add to the name of a file's copy."""


def is_secret_name(name: str) -> bool:
    """Whether a file of this name, or the file that it is a copy of, holds secrets."""
    low = name.lower()
    return _SECRET.match(low) is not None or _SECRET.match(_COPY.sub("", low.removeprefix("#"))) is not None


def is_secret(path: PurePath) -> bool:
    """Whether a file is secret by its name or by one of its folders, at an absolute path."""
    return is_secret_name(path.name) or not PRIVATE_FOLDERS.isdisjoint(part.lower() for part in path.parts[:-1])
