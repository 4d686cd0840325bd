"""What the secret scanner looks for, as data: prefixes of tokens, shapes, names that secrets are assigned to, harmless contexts.

Sources: the token formats that the services document, and the rules of gitleaks, trufflehog and GitHub's secret scanning.
"""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Alphabets of tokens, as the inside of a character class.
LETTERS: Final = "A-Za-z0-9"
WORD: Final = "A-Za-z0-9_"
URL_SAFE: Final = "A-Za-z0-9_-"
DOTTED: Final = "A-Za-z0-9_.=-"
CAPITALS: Final = "A-Z0-9"
HEX: Final = "0-9a-f"
BASE58: Final = "1-9A-HJ-NP-Za-km-z"
BECH32: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

#: Kind, prefixes, alphabet of the rest, fewest characters of the rest.
PREFIXES: Final = (
    ("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), LETTERS, 16),
    ("GitHub token", ("github_pat_",), WORD, 22),
    (
        "GitLab token",
        ("glpat-", "glrt-", "glrtr-", "gldt-", "glcbt-", "glptt-", "glft-", "glimt-", "glsoat-"),
        URL_SAFE,
        16,
    ),
    ("GitLab token", ("glagent-", "gloas-", "glffct-"), URL_SAFE, 20),
    ("Bitbucket token", ("ATBB", "ATCTT3xFfG", "ATATT3xFfG"), DOTTED, 24),
    ("Anthropic key", ("sk-ant-",), URL_SAFE, 20),
    ("OpenRouter key", ("sk-or-v1-",), LETTERS, 32),
    ("OpenAI key", ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-service-"), URL_SAFE, 20),
    ("Langfuse key", ("sk-lf-",), URL_SAFE, 20),
    ("Stripe key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_org_"), WORD, 16),
    ("webhook secret", ("whsec_",), "A-Za-z0-9+/=_-", 16),
    (
        "Slack token",
        ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxe-", "xoxc-", "xoxd-"),
        "A-Za-z0-9%-",
        10,
    ),
    ("Slack token", ("xoxe.xoxb-", "xoxe.xoxp-", "xapp-", "xwfp-"), URL_SAFE, 16),
    ("AWS access key", ("AKIA", "ASIA", "ABIA", "ACCA"), CAPITALS, 16),
    ("AWS Bedrock key", ("ABSK", "bedrock-api-key-"), "A-Za-z0-9+/=", 60),
    ("Google API key", ("AIza",), URL_SAFE, 35),
    ("Google OAuth secret", ("GOCSPX-",), URL_SAFE, 20),
    ("Google OAuth token", ("ya29.",), DOTTED, 20),
    ("Google OAuth token", ("1//0",), URL_SAFE, 40),
    ("Hugging Face token", ("hf_", "api_org_"), LETTERS, 30),
    ("npm token", ("npm_",), LETTERS, 30),
    ("PyPI token", ("pypi-",), URL_SAFE, 50),
    ("RubyGems key", ("rubygems_",), HEX, 40),
    ("crates.io token", ("cio",), LETTERS, 32),
    ("NuGet key", ("oy2",), "a-z0-9", 43),
    ("Docker token", ("dckr_pat_", "dckr_oat_"), URL_SAFE, 20),
    ("SendGrid key", ("SG.",), DOTTED, 40),
    ("Twilio key", ("SK",), HEX, 32),
    ("Mailgun key", ("key-",), HEX, 32),
    ("Mailersend key", ("mlsn.",), LETTERS, 40),
    ("Brevo key", ("xkeysib-", "xsmtpsib-"), URL_SAFE, 40),
    ("Resend key", ("re_",), WORD, 24),
    ("Postmark key", ("pm-",), HEX, 32),
    ("DigitalOcean token", ("dop_v1_", "doo_v1_", "dor_v1_"), HEX, 40),
    ("Shopify token", ("shpat_", "shpca_", "shppa_", "shpss_"), "0-9a-fA-F", 32),
    ("Databricks token", ("dapi",), HEX, 32),
    ("Linear key", ("lin_api_", "lin_oauth_"), LETTERS, 32),
    ("Notion token", ("ntn_", "secret_"), LETTERS, 40),
    ("Figma token", ("figd_", "figo_", "figoh_"), URL_SAFE, 32),
    ("Groq key", ("gsk_",), LETTERS, 40),
    ("xAI key", ("xai-",), LETTERS, 60),
    ("Perplexity key", ("pplx-",), LETTERS, 40),
    ("Replicate token", ("r8_",), LETTERS, 30),
    ("Fireworks key", ("fw_",), LETTERS, 20),
    ("Cerebras key", ("csk-",), LETTERS, 40),
    ("NVIDIA key", ("nvapi-",), URL_SAFE, 40),
    ("Together key", ("tgp_v1_",), URL_SAFE, 40),
    ("Tavily key", ("tvly-",), URL_SAFE, 20),
    ("Firecrawl key", ("fc-",), HEX, 32),
    ("Jina key", ("jina_",), URL_SAFE, 40),
    ("E2B key", ("e2b_",), HEX, 40),
    ("ElevenLabs key", ("sk_",), HEX, 48),
    ("LangSmith key", ("lsv2_pt_", "lsv2_sk_"), WORD, 32),
    ("Pinecone key", ("pcsk_",), WORD, 40),
    ("mem0 key", ("m0-",), LETTERS, 32),
    ("Weights & Biases key", ("wandb_v1_",), WORD, 30),
    ("Vercel token", ("vercel_blob_rw_", "vcp_", "vci_", "vca_", "vcr_", "vck_"), WORD, 24),
    ("Netlify token", ("nfp_", "nfc_", "nfo_", "nfb_"), LETTERS, 30),
    ("Supabase key", ("sbp_", "sb_secret_"), URL_SAFE, 24),
    ("Heroku token", ("HRKU-",), URL_SAFE, 30),
    ("Fly.io token", ("FlyV1 fm2_", "fm2_", "fo1_"), "A-Za-z0-9+/=_-", 40),
    ("Cloudflare token", ("cfat_", "cfut_", "v1.0-"), URL_SAFE, 36),
    ("Deno token", ("ddp_", "ddw_"), LETTERS, 36),
    ("Doppler token", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."), DOTTED, 40),
    ("Vault token", ("hvs.", "hvb.", "hvr."), URL_SAFE, 24),
    ("1Password token", ("ops_eyJ",), "A-Za-z0-9+/=_-", 60),
    ("Tailscale key", ("tskey-",), URL_SAFE, 20),
    ("Pulumi token", ("pul-",), HEX, 40),
    ("PlanetScale token", ("pscale_tkn_", "pscale_pw_", "pscale_oauth_"), DOTTED, 30),
    ("Neon key", ("napi_",), LETTERS, 40),
    ("Postman key", ("PMAK-",), URL_SAFE, 40),
    ("New Relic key", ("NRAK-", "NRII-", "NRJS-"), CAPITALS, 19),
    ("Grafana token", ("glsa_", "glc_"), "A-Za-z0-9+/=_", 32),
    ("Sentry token", ("sntrys_", "sntryu_"), "A-Za-z0-9+/=_", 40),
    ("Dynatrace token", ("dt0c01.", "dt0s01.", "dt0s16."), DOTTED, 60),
    ("Datadog key", ("ddapp_", "ddapi_"), LETTERS, 30),
    ("Honeycomb key", ("hcaik_", "hcxik_"), LETTERS, 40),
    ("PostHog key", ("phx_",), LETTERS, 32),
    ("HubSpot token", ("pat-na1-", "pat-na2-", "pat-eu1-"), URL_SAFE, 32),
    ("Square token", ("sq0atp-", "sq0csp-", "EAAAE", "EAAAl"), URL_SAFE, 22),
    ("Facebook token", ("EAACEdEose0cBA", "EAAG", "EAAB"), LETTERS, 40),
    ("Flutterwave key", ("FLWSECK-", "FLWSECK_TEST-"), URL_SAFE, 20),
    ("Shippo token", ("shippo_live_", "shippo_test_"), HEX, 40),
    ("Mapbox token", ("sk.eyJ",), DOTTED, 40),
    ("Contentful token", ("CFPAT-",), URL_SAFE, 40),
    ("Buildkite token", ("bkua_", "bkaj_"), HEX, 40),
    ("CircleCI token", ("CCIPAT_", "CCIPRJ_"), WORD, 40),
    ("Artifactory token", ("AKCp", "cmVmdGtu"), LETTERS, 60),
    ("Alibaba access key", ("LTAI",), LETTERS, 16),
    ("Adobe secret", ("p8e-", "p8_"), URL_SAFE, 32),
    ("Typeform token", ("tfp_",), DOTTED, 40),
    ("ReadMe key", ("rdme_",), LETTERS, 60),
    ("Zuplo key", ("zpka_",), WORD, 30),
    ("Prefect key", ("pnu_", "pnb_"), LETTERS, 30),
    ("Scaleway key", ("SCW",), CAPITALS, 17),
    ("Yandex token", ("AQVN", "y0_"), URL_SAFE, 35),
    ("Airtable token", ("pat",), DOTTED, 60),
    ("age secret key", ("AGE-SECRET-KEY-1",), CAPITALS, 50),
    ("Nostr secret key", ("nsec1",), BECH32, 50),
    ("extended private key", ("xprv", "yprv", "zprv", "tprv"), BASE58, 100),
    ("SonarQube token", ("sqp_", "squ_", "sqa_"), HEX, 40),
    ("Sourcegraph token", ("sgp_",), "0-9a-f_", 40),
    ("Trello token", ("ATTA",), "0-9a-f", 60),
    ("EasyPost key", ("EZAK", "EZTK"), LETTERS, 50),
    ("Render key", ("rnd_",), LETTERS, 24),
    ("n8n key", ("n8n_api_",), HEX, 40),
    ("Adafruit IO key", ("aio_",), LETTERS, 28),
    ("WakaTime key", ("waka_",), "0-9a-f-", 36),
    ("Razorpay key", ("rzp_live_", "rzp_test_"), LETTERS, 14),
    ("Duffel token", ("duffel_live_", "duffel_test_"), URL_SAFE, 40),
    ("ipfsmem token", ("ipfsmem_",), URL_SAFE, 40),
)

#: Kind, hints of which one must stand in the text (in lower case for a pattern in any case), pattern. A group `value` must not be a
#: placeholder; without a group `is` a match is a finding, with it only where that group took part. A pattern takes a bounded number of
#: steps from one place, and never fails after a long run in which it could begin again: texts of strangers are scanned.
SHAPES: Final = (
    (
        "private key (PEM)",
        ("-----BEGIN ",),
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----"
        r"(?:[^-]|-(?!----)){0,20000}(?:-----END[^\n]{0,80})?",
    ),
    (
        "private key (PuTTY)",
        ("Private-Lines:",),
        r"Private-Lines: \d{1,4}\n(?:[A-Za-z0-9+/=]{1,80}\n?){1,400}",
    ),
    (
        "private key (base64)",
        ("LS0tLS1CRUdJTi",),
        r"\bLS0tLS1CRUdJTi[A-Za-z0-9+/]{4,30}(?:UFJJVkFURS|QUklWQVRF|BSSVZBVE)[A-Za-z0-9+/=]{0,20000}",
    ),
    # A text that begins like one and is not one is passed over as far as it goes.
    (
        "JWT",
        ("eyJ",),
        r"\beyJ(?:(?P<is>[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+)|[A-Za-z0-9_-]*+)",
    ),
    ("OpenAI key", ("sk-",), r"\bsk-(?=[A-Za-z]{0,60}+[0-9])[A-Za-z0-9]{20,}+"),
    (
        "Slack webhook",
        ("hooks.slack.com",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{20,200}",
    ),
    (
        "webhook URL",
        ("/api/webhooks/",),
        r"discord(?:app)?\.com/api/webhooks/[0-9]{10,25}/[A-Za-z0-9_-]{30,120}",
    ),
    (
        "webhook URL",
        (".webhook.office.com/", "hooks.zapier.com"),
        r"(?:\.webhook\.office\.com/webhookb2|hooks\.zapier\.com/hooks/catch)/[A-Za-z0-9@/_-]{12,300}",
    ),
    ("Telegram bot token", (":AA",), r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])"),
    (
        "Discord token",
        (".",),
        r"(?<![A-Za-z0-9_.-])[A-Za-z0-9_-]{24,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}(?![A-Za-z0-9_.-])",
    ),
    ("Terraform token", (".atlasv1.",), r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,100}"),
    (
        "Azure client secret",
        ("Q~",),
        r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])",
    ),
    ("Mailchimp key", ("-us",), r"(?<![0-9a-f])[0-9a-f]{32}-us[0-9]{1,2}\b"),
    ("Asana token", ("/1",), r"(?<![0-9/])[0-9]/[0-9]{16}(?:/[0-9]{16})?:[0-9a-f]{32}\b"),
    (
        "password in a URL",
        ("://",),
        r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,100}:(?P<value>[^\s/@\"'<>]{3,200})@",
    ),
    (
        "TOTP secret",
        ("otpauth://",),
        r"otpauth(?:-migration)?://[^\s]{0,200}?(?:secret|data)=[A-Za-z0-9%+/=]{8,200}",
    ),
    (
        "signed URL",
        ("sig=", "signature=", "appid=", "token=", "key=", "secret="),
        r"(?i)[?&;](?:sig|(?:x-amz-)?signature|access_token|auth_token|appid|app_?key|id_token|token|api_?key|key|client_secret|secret)="
        r"(?P<value>[A-Za-z0-9%_~+/=.-]{16,2000})",
    ),
    (
        "HTTP credentials",
        ("bearer",),
        r"(?i)\bbearer[ \t]{1,4}(?P<value>[A-Za-z0-9._~+/=-]{16,2000})",
    ),
    ("HTTP credentials", ("basic",), r"(?i)\bbasic[ \t]{1,4}(?P<basic>[A-Za-z0-9+/]{8,400}={0,2})"),
    ("HTTP credentials", ('"auth"',), r"\"auth\"\s{0,8}:\s{0,8}\"(?P<basic>[A-Za-z0-9+/]{8,400}={0,2})\""),
    (
        "password on a command line",
        (" -u", " --user"),
        r"(?i)\b(?:curl|wget|https?|xh)\b[^\n]{0,300}?[ ](?:-u|--user)[= ]?[\"']?[^\s:\"']{1,80}:(?P<value>[^\s\"']{3,200})",
    ),
    ("password on a command line", ("sshpass",), r"\bsshpass[ ]{1,4}-p[ ]?[\"']?(?P<value>[^\s\"']{3,200})"),
    (
        "password on a command line",
        ("mysql", "mariadb"),
        r"\b(?:mysql|mysqldump|mariadb)\b[^\n]{0,200}?[ ]-p(?P<value>[^\s\"']{6,200})",
    ),
    (
        "password on a command line",
        ("-pass", "-token", "-secret", "-key", "-api"),
        r"(?i)(?<![A-Za-z0-9-])--(?:[a-z]{1,20}-){0,3}(?:password|passwd|passphrase|pass|secret|token|api-?key|access-key|secret-key)[= ]"
        r"[\"']?(?P<value>[^\s\"'`]{6,400})",
    ),
    (
        "password in netrc",
        ("login", "password"),
        r"\blogin[ \t]{1,8}[^\s]{1,100}\s{1,8}password[ \t]{1,8}(?P<value>[^\s]{3,200})",
    ),
    (
        "password in pgpass",
        (":5432:", ":3306:", ":*:"),
        r"(?m)^[A-Za-z0-9.*-]{1,100}:(?:[0-9]{2,5}|\*):[^:\s]{1,60}:[^:\s]{1,60}:(?P<value>[^\s:]{3,200})$",
    ),
    (
        "password in SQL",
        ("identified by", "password"),
        r"(?i)\b(?:identified by|password)\s{1,8}'(?P<value>[^'\n]{3,200})'",
    ),
    (
        "password on a command line",
        ("login", "redis-cli", "ldapsearch"),
        r"\b(?:(?:docker|podman|helm|az|oc|cf|npm|skopeo|buildah|crane|oras|nerdctl|gcloud)[^\n]{0,60}?[ ]login|redis-cli|ldapsearch)\b[^\n]{0,200}?[ ]-[paw]"
        r"[ ][\"']?(?P<value>[^\s\"'-][^\s\"']{5,200})",
    ),
    (
        "password on a command line",
        ("pass:", " -u"),
        r"[ ](?:-pass(?:in|out)?[ ]pass:|-U[ ]?[\"']?[A-Za-z0-9_.\\/-]{1,60}%)(?P<value>[^\s\"']{4,200})",
    ),
    (
        "password on a command line",
        ("/user:", "requirepass", "masterauth", "-securestring"),
        r"(?i)(?:/user:[^\s]{1,80}|^[ \t]{0,8}requirepass|^[ \t]{0,8}masterauth|\bConvertTo-SecureString(?:[ ]-String)?)[ ]{1,4}[\"']?(?P<value>[^\s\"'/$(-][^\s\"']{4,200})",
    ),
    (
        "HTTP credentials",
        ("authorization",),
        r"(?i)\bauthorization[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?[a-z-]{2,20}[ ](?P<value>[A-Za-z0-9._~+/=-]{16,2000})",
    ),
    (
        "HTTP credentials",
        ("_auth",),
        r"(?m)(?:^|[:\s])_auth[ \t]{0,4}[=:][ \t]{0,4}[\"']?(?P<basic>[A-Za-z0-9+/]{8,400}={0,2})",
    ),
    (
        "token in a URL",
        ("://",),
        r"(?<![A-Za-z0-9+.-])https?://(?P<token>[A-Za-z0-9_-]{20,250})@(?![a-z0-9.-]{0,60}sentry)",
    ),
    (
        "password of a login",
        ("cred", "login", "@"),
        r"(?i)\b(?:creds?|credentials|logins?)[ ]?[:=]?[ ]{0,3}[A-Za-z0-9_.@+-]{1,60}[ ]{0,2}[/|,:][ ]{0,2}(?P<strong>[^\s\"'`]{8,100})",
    ),
    (
        "password of a login",
        ("@",),
        r"(?<![A-Za-z0-9_./@:%+-])[A-Za-z][A-Za-z0-9_.-]{0,40}:(?P<strong>[^\s/@:\"'<>]{8,100})@[A-Za-z0-9-]{1,60}\.[A-Za-z0-9]",
    ),
    (
        "TOTP secret",
        ("totp", "2fa", "mfa", "otp", "authenticator"),
        r"(?<![A-Za-z])(?i:totp|2fa|mfa|otp|authenticator)(?![A-Za-z])[^\n]{0,24}?(?<![A-Za-z0-9])(?P<is>(?=[A-Z]{0,40}[2-7])[A-Z2-7]{16,64})(?![A-Za-z0-9])",
    ),
    (
        "password in a QR text",
        ("wifi:",),
        r"(?i)\bwifi:(?=[^\n]{0,100}?;P:|P:)[^\n]{0,100}?\bP:(?P<value>[^;\s]{5,100})",
    ),
    (
        "PIN",
        ("pin", "passcode", "暗証番号"),
        r"(?:[Pp](?<![A-Za-z].)(?i:in|asscode)(?:(?:[ _-]?(?:nr|number|no))?[ ]?[:：=][ ]?|(?<=passcode)[ ]|(?<=PIN)(?<!GPIO PIN)[ ])|暗証番号[ ]?[:：=][ ]?)(?P<is>[0-9]{4,8})(?![0-9A-Za-z.-])",
    ),
    (
        "private key (hex)",
        ("key", "seed", "secret"),
        r"(?i)\b(?:private|secret|priv|signing|master|wallet|account)?[ _-]?(?:key|seed|secret)\b[^\n0-9a-f]{0,24}(?:0x)?[0-9a-f]{64}(?![0-9a-f])",
    ),
    (
        "private key (WIF)",
        ("5", "K", "L"),
        r"(?<![1-9A-HJ-NP-Za-km-z0OIl_/-])(?:5[1-9A-HJ-NP-Za-km-z]{50}|[KL][1-9A-HJ-NP-Za-km-z]{51})(?![A-Za-z0-9_-])",
    ),
    ("private key (numbers)", ("[",), r"\[\s{0,4}(?:[0-9]{1,3}\s{0,4},\s{0,4}){63}[0-9]{1,3}\s{0,4}\]"),
    ("private key (JWK)", ('"kty"',), r"\"d\"\s{0,4}:\s{0,4}\"[A-Za-z0-9_-]{40,2000}\""),
)

#: What a password is called.
PASSWORD_NAMES: Final = (
    "password", "passwort", "passwords", "passphrase", "passcode", "passwd", "pwd", "kennwort", "contraseña", "contrasena", "contrasenya", "senha", "mot de passe",
    "wachtwoord", "psk", "mdp", "bindpw", "passord", "adgangskode", "lösenord", "losenord", "salasana", "hasło", "haslo", "heslo", "geslo", "lozinka", "jelszó", "jelszo",
    "parolă", "parola", "parola d'ordine", "parool", "slaptažodis", "şifre", "sifre", "kata sandi", "mật khẩu", "пароль", "парола", "лозинка", "κωδικός",
    "كلمة المرور", "كلمة السر", "סיסמה", "סיסמא", "पासवर्ड", "รหัสผ่าน", "密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호", "암호",
)  # fmt: skip
_NAMED: Final = "|".join(sorted(PASSWORD_NAMES, key=len, reverse=True))
#: A sentence that says a password or a token: `what` is its name, `spoken` the word.
SENTENCE: Final = (
    rf"(?i)(?<![A-Za-z])(?P<what>{_NAMED}|(?:api|access|auth|secret|private|license)[ -]?key|token|secret|pin(?: code)?)(?![A-Za-z])[^\n:=.,;?!]{{0,40}}?"
    r"(?:[ ](?:is|was|lautet|ist|es|est|é|è|to|zu|jest|je|är|er|on|это)(?: now)?[ :]{1,3}|[ ]?(?:是|为|為|は|은|는)[ :：]{0,2})"
    r"[\"'`“「]?(?P<spoken>[^\s\"'`”」]{4,100})"
)

#: Words that end a name to which a secret is assigned, longest first; any case style, digits and an environment may follow.
SECRET_NAMES: Final = (
    *PASSWORD_NAMES,
    "secret", "secrets", "token", "apikey", "authkey", "authtoken", "accesstoken", "secretkey", "privatekey", "credential", "credentials", "mnemonic",
)  # fmt: skip
#: Words of which one must come before `key`.
KEY_OWNERS: Final = _words(
    """
    access account admin aes anthropic api app application auth aws azure bot cipher cookie crypto decryption
    deploy encryption functions gcp google gpg hmac host ingest jwt license master openai pgp priv private root
    secret server service session shared sign signing ssh storage stripe subscription wallet webhook write
    """
)
#: Words that follow the ending of such a name.
NAME_TAILS: Final = _words(
    """
    1 2 3 base dev development live main new old prod production staging string test text v1 v2 value
    """
)
#: A name with one of these is public, or names something about a secret.
PUBLIC_WORDS: Final = _words(
    """
    age arn budget cache cached column completion continuation count csrf cursor endpoint expired expires expiry
    field fields file filename format hash hashed header hint id ids input label len length limit manager max min
    mode name names next output page path pattern per placeholder policy prompt provider public publishable ref
    regex reset rotation size store sync ttl type types uri url usage used uses xsrf
    """
)
#: A value made of these words only stands for a secret.
PLACEHOLDER_WORDS: Final = _words(
    """
    1password abc abcdef above admin apikey ask bar baz below bitwarden bytes change changeme default dummy empty
    enter env environ environment example examples fake false foo foobar from here hidden insert int keepass key
    keychain keyring lastpass masked my mypassword nil no none null onepassword optional our pass passphrase
    passwd password placeholder please postgres pw pwd redacted removed replace replaceme required root same
    sample secret secrets see str string supersecret tbd text the todo token topsecret true undefined unknown
    unset user username value values variable vault xxx xxxx yes your
    """
)
#: Words that a sentence about passwords says after "is", which are names of methods.
METHODS: Final = (
    r"(?i)(?:sha-?[0-9]|md[45]|base-?[0-9]{2}|utf-?[0-9]|argon2|bcrypt|scrypt|pbkdf2|aes-?[0-9]|rsa-?[0-9]|ed25519|x25519|blake[23]|"
    r"[0-9]+[- ]?(?:char|byte|bit|digit|day|hour|min|sec|word|letter)|v?[0-9]+(?:\.[0-9]+)*[.,;]?$|[0-9]{1,3}[+%]?$|oauth|1password|case-)"
)

#: What stands right before a long token that is public.
PUBLIC_BEFORE: Final = (
    r"(?i)(?<![a-z])(?:sha-?[0-9]{1,3}(?:-|:|=)|h1:|did:[a-z0-9]{2,10}:|(?:next|page|cursor|continuation|sync)\w{0,20}[\"'`]?[ \t]{0,4}[:=][ \t]{0,4}[\"'`]?|(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp[0-9]{3}|sk-ssh-ed25519@openssh\.com)[ ]|base64,|"
    r"(?:hash|digest|checksum|integrity|fingerprint|cid|commit|etag|nonce|signature|sig|address|pubkey|public[ _-]?key|publickey|version|"
    r"build(?:[ _-]?id)?|revision|tree|object|blob|oid|u?uid|guid|account|tx|transaction|merkle|root|block|content|image|data|id|ref|rev|sha|md5|"
    r"certificate|cert|peer|node|multihash|keyid|thumbprint|state|cursor|page|next|recipient|salt|iv|proof)[\"'`]?[ \t]{0,4}[:=]?[ \t]{0,4}[\"'`(]?)$"
)
#: What stands before 0x and 64 hex digits that are a hash and not a key.
HASH_BEFORE: Final = (
    r"(?i)(?:tx|txn|transaction|hash|block|root|digest|commit|topic|slot|keccak\w*|sha\w*|checksum|state|event|receipt|proof|selector|bytes32|cid|"
    r"merkle|salt|signature|sig|domain|separator|id|contract|storage)\b[^\n]{0,24}$"
)
