"""Data of the secret scanner: token prefixes, patterns, names of secrets, harmless contexts.

Sources: token formats documented by services, and the rules of gitleaks, trufflehog and GitHub's secret scanning.
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

#: (kind, prefixes, alphabet of the rest, minimum length of the rest)
PREFIXES: Final = (
    ("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), LETTERS, 16),
    ("GitHub token", ("github_pat_",), WORD, 22),
    (
        "GitLab token",
        ("glpat-", "glrt-", "glrtr-", "gldt-", "glcbt-", "glptt-", "glft-", "glimt-", "glsoat-"),
        URL_SAFE,
        16,
    ),
    ("GitLab token", ("glagent-", "gloas-", "glffct-", "GR1348941"), URL_SAFE, 20),
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
    ("Fly.io token", ("fm2_", "fm1r_", "fm1a_", "fo1_"), "A-Za-z0-9+/=_-", 40),
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
    ("Sui private key", ("suiprivkey1",), BECH32, 50),
    (
        "Cardano secret key",
        ("addr_xsk1", "acct_xsk1", "root_xsk1", "ed25519e_sk1", "ed25519_sk1"),
        BECH32,
        50,
    ),
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
    ("X token", ("AAAAAAAAAAAAAAAAAAAA",), "A-Za-z0-9%", 60),
    ("VK token", ("vk1.a.",), URL_SAFE, 60),
    ("Clojars token", ("CLOJARS_",), LETTERS, 40),
    ("Frame.io token", ("fio-u-",), URL_SAFE, 40),
    ("Infracost key", ("ico-",), LETTERS, 32),
    ("Octopus key", ("API-",), CAPITALS, 26),
    ("OpenShift token", ("sha256~",), URL_SAFE, 43),
    ("1Password secret key", ("A3-",), "A-Z0-9-", 30),
    ("Plaid token", ("access-sandbox-", "access-development-", "access-production-"), "0-9a-f-", 36),
    ("Braintree token", ("access_token$production$", "access_token$sandbox$"), "a-z0-9$", 40),
    ("Square token", ("EAAA",), URL_SAFE, 50),
    ("Telegram session", ("1BVts", "1AZWarz"), "A-Za-z0-9_=-", 200),
    ("Discord token", ("mfa.",), URL_SAFE, 60),
    ("Yandex token", ("t1.9eu",), DOTTED, 60),
    ("EKS token", ("k8s-aws-v1.",), URL_SAFE, 60),
    ("GoCardless token", ("live_",), URL_SAFE, 40),
    ("OpenAI session", ("sess-",), LETTERS, 40),
    ("Voyage key", ("pa-",), URL_SAFE, 40),
    ("Apify token", ("apify_api_",), LETTERS, 30),
    ("ipfsmem token", ("ipfsmem_",), URL_SAFE, 40),
)

#: Names of passwords.
PASSWORD_NAMES: Final = (
    "password", "passwort", "passwords", "passphrase", "passcode", "passwd", "pwd", "pswd", "passw", "passwrd", "clave", "код доступа", "паролем", "пароля", "пароли", "合言葉", "비번", "kennwort", "contraseña", "contrasena", "contrasenya", "senha", "mot de passe",
    "wachtwoord", "psk", "mdp", "bindpw", "passord", "adgangskode", "lösenord", "losenord", "salasana", "hasło", "haslo", "heslo", "geslo", "lozinka", "jelszó", "jelszo",
    "parolă", "parola", "parola d'ordine", "parool", "slaptažodis", "şifre", "sifre", "kata sandi", "mật khẩu", "пароль", "парола", "лозинка", "κωδικός",
    "كلمة المرور", "كلمة السر", "סיסמה", "סיסמא", "पासवर्ड", "รหัสผ่าน", "密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호", "암호",
)  # fmt: skip
#: Names of service tokens and keys in other languages than English.
TOKEN_NAMES: Final = (
    "api-schlüssel", "schlüssel", "zugriffsschlüssel", "ключ api", "api-ключ", "ключ", "ключа", "токен", "токена", "секрет", "私钥", "私鑰", "密钥", "秘钥", "令牌", "キー", "トークン", "シークレット",
    "clé", "jeton", "chiave", "chave", "klucz", "sleutel", "nyckel", "anahtar", "키", "토큰",
)  # fmt: skip

#: Words before `pk` that make it a private key; elsewhere, `pk` is often a public or primary key.
WALLETS: Final = (
    "wallet", "deployer", "eth", "ethereum", "evm", "metamask", "rabby", "phantom", "trezor", "ledger", "solana", "sol", "bitcoin", "btc", "polygon",
    "sepolia", "mainnet", "testnet", "hardhat", "burner", "minter", "relayer",
)  # fmt: skip

#: (kind, hints, pattern). One of the hints (in lower case) must be in the line; a pattern without hints is tried at
#: long runs of token characters. A group `value` must not be a placeholder. If a pattern has a group `is`, only a
#: match with that group is a finding. Scanned texts are untrusted: a pattern must need a bounded number of steps per
#: position, and must not fail after a long run in which it could restart.
SHAPES: Final = (
    (
        "private key (PEM)",
        ("-----BEGIN ",),
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----(?=[^-]{0,300}?[A-Za-z0-9+/=]{6})"
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
    # The second alternative skips a text with this prefix that is not a token.
    (
        "JWT",
        (),
        r"\beyJ(?:(?P<is>[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+)|[A-Za-z0-9_-]*+)",
    ),
    ("OpenAI key", (), r"\bsk-(?=[A-Za-z]{0,60}+[0-9])[A-Za-z0-9]{20,}+"),
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
    ("Telegram bot token", (), r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])"),
    (
        "Discord token",
        (),
        r"(?<![A-Za-z0-9_.-])[A-Za-z0-9_-]{24,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}(?![A-Za-z0-9_.-])",
    ),
    ("Terraform token", (), r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,100}"),
    (
        "Azure client secret",
        (),
        r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])",
    ),
    ("Mailchimp key", (), r"(?<![0-9a-f])[0-9a-f]{32}-us[0-9]{1,2}\b"),
    ("Asana token", (), r"(?<![0-9/])[0-9]/[0-9]{16}(?:/[0-9]{16})?:[0-9a-f]{32}\b"),
    (
        "password in a URL",
        ("@",),
        r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,100}:(?P<value>[^\s/@\"'<>]{3,200})@",
    ),
    (
        "TOTP secret",
        ("otpauth://",),
        r"otpauth(?:-migration)?://[^\s]{0,200}?(?:secret|data)=[A-Za-z0-9%+/=]{8,200}",
    ),
    (
        "signed URL",
        ("?", "&"),
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
        ("curl", "wget", "http -", "https -"),
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
        ("-pass", "-secret", "-token", "-api-key", "-apikey", "-access-key"),
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
        (":5432:", ":*:"),
        r"(?m)^[A-Za-z0-9.*-]{1,100}:(?:[0-9]{2,5}|\*):[^:\s]{1,60}:[^:\s]{1,60}:(?P<value>[^\s:]{3,200})$",
    ),
    (
        "password in SQL",
        ("identified ", "password"),
        r"(?i)\b(?:identified(?:[ ]with[ ][a-z_\"']{1,40})?[ ](?:by|as)|password)(?:\s{1,8}|\s{0,8}[=(]\s{0,8})(?:N?'|(?<=[yY][ ])\")(?P<value>[^'\"\n]{3,200})['\"]",
    ),
    (
        "password in SQL",
        ("identified by",),
        r"(?i)\bidentified[ ]by[ ](?:values[ ])?(?P<mixed>[A-Za-z0-9_#$!]{6,60})(?=[\s;]|$)",
    ),
    (
        "password on a command line",
        ("sqlplus", "rman ", "expdp", "impdp"),
        r"(?i)\b(?:sqlplus|expdp|impdp|rman[ ]target)[ ](?:-[a-z][ ]){0,2}[\"']?[a-z0-9_$#]{1,40}/(?P<value>[^\s/@\"']{4,100})",
    ),
    (
        "password in SQL",
        ("sp_addlogin", "sp_addlinkedsrvlogin", "sp_password"),
        r"(?i)\bsp_(?:addlogin|addlinkedsrvlogin|password)\b[^\n']{0,40}(?:'[^'\n]{0,80}'|(?<=NULL)),(?:[^'\n]{0,40}'[^'\n]{0,80}',){0,3}?\s{0,4}(?:@\w{1,20}\s?=\s?)?N?'(?P<value>[^'\n]{6,200})'",
    ),
    (
        "password in JDBC",
        ("jdbc:oracle",),
        r"(?i)\bjdbc:oracle:[a-z]{2,6}:[A-Za-z0-9_$#]{1,40}/(?P<value>[^\s/@\"']{3,100})@",
    ),
    (
        "password of a device",
        ("radius", "tacacs", "enable ", "message-digest", "key-string", "auth ", "priv ", "chap password"),
        r"(?i)\b(?:(?:radius|tacacs)-server\b[^\n]{0,80}?[ ]key(?:[ ][0-9])?|enable[ ](?:secret|password)(?:[ ][0-9])?|message-digest-key[ ][0-9]{1,3}[ ]md5(?:[ ][0-9])?|auth[ ](?:sha|md5)(?:-?[0-9]{3})?|priv[ ](?:aes|des|3des)(?:[ -]?[0-9]{3})?"
        r"|key-string(?:[ ][0-9])?|chap[ ]password(?:[ ][0-9])?)[ ][\"']?(?P<mixed>[^\s\"'`<$]{6,100})",
    ),
    (
        "password of a device",
        ("community", "isakmp", "wpa-psk", "pre-shared", "snmp"),
        r"(?i)\b(?:snmp-server[ ](?:community|host[ ][^\s]{1,60}(?:[ ]version[ ]\w{1,4})?)|(?:ro|rw)community6?|snmp[ ]community|community[ ]?[:=]|isakmp[ ]key(?:[ ][0-9])?|pre-shared-key(?:[ ](?:local|remote|ascii-text|[0-9])){0,2}"
        r"|wpa-psk[ ](?:ascii|hex)(?:[ ][0-9])?|snmp(?:walk|get|bulkwalk|set|getnext|table)\b[^\n]{0,80}?[ ]-[cAX])[ ]{0,4}[\"']?(?!(?:public|private|ro|rw|string)\b)(?P<value>[^\s\"'`]{5,100})",
    ),
    (
        "password hash",
        ("$",),
        r"(?<![A-Za-z0-9$])\$(?:1|2[abxy]?|5|6|7|8|9|y|gy|apr1|P|H|argon2(?:id|i|d)|scrypt|pbkdf2[a-z0-9-]{0,10})\$(?P<value>[A-Za-z0-9./$=,+]{20,300})",
    ),
    (
        "password hash",
        ("sha}", "pbkdf2", "smd5}", "sha512}", "sha256}"),
        r"(?:\{(?:S?SHA(?:256|384|512)?|S?MD5)\}(?P<value>[A-Za-z0-9+/]{20,200}={0,2})|\bpbkdf2_sha(?:1|256)\$[0-9]{4,8}\$[A-Za-z0-9]{8,40}\$[A-Za-z0-9+/]{20,100}={0,2})",
    ),
    (
        "password on a command line",
        (
            "htpasswd",
            "chpasswd",
            "sudo -s",
            "secret create",
            "net use",
            "net user",
            "useradd",
            "--password-stdin",
        ),
        r"(?:\bhtpasswd[ ](?:-[A-Za-z]{1,4}[ ]){0,3}-[A-Za-z]{0,4}b[A-Za-z]{0,4}[ ][^\s]{1,200}[ ][^\s]{1,60}[ ]|\bchpasswd[^\n]{0,20}<<<[ ]?[\"'][^\s:]{1,60}:|\b(?:echo|printf)[ ](?:-n[ ])?[\"']?(?:[^\s:\"']{1,60}:(?=[^\n|]{3,100}\|[ ]?(?:sudo[ ])?chpasswd))?"
        r"(?=[^\n|]{3,200}\|[^\n]{0,100}?(?:sudo[ ]-S|--password-stdin|chpasswd|secret[ ]create))|\bnet[ ]user[ ][^\s]{1,40}[ ])[\"']?(?P<value>[^\s\"'/$<-][^\s\"'|]{4,200})",
    ),
    (
        "password on a command line",
        (
            "sqlcmd",
            "bcp ",
            "ipmitool",
            "mosquitto",
            "zip ",
            "unzip ",
            "7z ",
            "rar ",
            "unrar ",
            "plink",
            "mongo",
            "rdesktop",
            "psexec",
            "openssl enc",
            "ldap",
            "ssh-keygen",
            "http -",
            "https -",
            "storepass",
            "keypass",
            "lftp",
            "-pw ",
            "security add",
            "xfreerdp",
            "cmdkey",
        ),
        r"(?:\b(?:sqlcmd|bcp|ipmitool|mosquitto_(?:pub|sub)|zip|unzip)\b[^\n]{0,200}?[ ]-P|\b(?:7z|7za|unrar|rar)\b[^\n]{0,200}?[ ]-p|\bplink\b[^\n]{0,200}?[ ]-pw|\b(?:mongo|mongosh|mongodump|rdesktop|psexec|sshpass)\b[^\n]{0,200}?[ ]-p"
        r"|\bopenssl[ ]enc\b[^\n]{0,200}?[ ]-k|\bldap(?:search|modify|add|delete|whoami|passwd)\b[^\n]{0,200}?[ ]-w|\bssh-keygen\b[^\n]{0,200}?[ ]-[NP]|\b(?:https?|xh)\b[^\n]{0,200}?[ ](?:-a|--auth)[ ][^\s:]{1,60}:"
        r"|\bsecurity[ ]add-\w{1,10}-password\b[^\n]{0,200}?[ ]-w|\blftp[ ]-u[ ][^\s,]{1,60},|[ ]/(?:p|pass):|[ ]-(?:storepass|keypass|srcstorepass|deststorepass|passphrase|pw))[ ]?[\"']?(?![0-9]{1,5}(?:[\s:]|$))(?P<value>[^\s\"'/$<-][^\s\"']{4,200})",
    ),
    (
        "session cookie",
        ("cookie",),
        r"(?i)\b(?:set-)?cookie[\"']?:[^\n]{0,300}?(?:sess\w{0,20}|sid|\w{0,20}token|jwt|auth\w{0,20}|remember\w{0,20})=(?P<value>[A-Za-z0-9%._~+/=-]{16,2000})",
    ),
    (
        "webhook URL",
        ("/webhook", "/hooks/", "hook.", "maker.ifttt", "/integration/", "/hook/", "hc-ping.com"),
        r"https?://(?:[^\s/]{1,80}/(?:api/|bot/|open-apis/bot/v2/|cgi-bin/){0,2}(?:webhooks?|hooks?|integration)/(?:[A-Za-z0-9_-]{1,30}/){0,2}|hook\.[a-z0-9.]{1,30}/|hc-ping\.com/|maker\.ifttt\.com/trigger/[^\s/]{1,60}/(?:json/)?with/key/)"
        r"(?P<hook>[A-Za-z0-9_-]{20,200})",
    ),
    (
        "passphrase",
        (
            "passphrase",
            "pass phrase",
            "diceware",
            "master key",
            "master password",
            "парольная фраза",
            "parolă",
            "passwortsatz",
        ),
        r"(?i)(?<![a-z])(?:pass ?phrase|diceware|master (?:key|password)|парольная фраза|passwortsatz)(?:[ ](?:for|of|to|für)[ ][^\n:=]{1,40}?)?(?:[ ]is|[ ]?[:：=])[ ]{1,3}"
        r"(?P<words>[a-z0-9]{2,20}(?:[ ][a-z0-9]{2,20}){3,11})(?=[.]?[ \t]*(?:\n|$))",
    ),
    (
        "code of a share",
        ("提取码", "访问码", "解压码"),
        r"(?:提取码|访问码|解压码)[是：: ]{1,3}(?P<is>[A-Za-z0-9]{4,12})(?![A-Za-z0-9])",
    ),
    (
        "recovery phrase",
        ("助记词", "助記詞", "恢复短语"),
        r"(?:助记词|助記詞|恢复短语)[是：: ]{0,4}(?P<is>(?:[\u4e00-\u9fff][ 　]){11,23}[\u4e00-\u9fff])",
    ),
    (
        "password on a command line",
        ("login", "redis-cli"),
        r"\b(?:(?:docker|podman|helm|az|oc|cf|npm|skopeo|buildah|crane|oras|nerdctl|gcloud)[^\n]{0,60}?[ ]login|redis-cli)\b[^\n]{0,200}?[ ]-[paw]"
        r"[ ][\"']?(?P<value>[^\s\"'-][^\s\"']{5,200})",
    ),
    (
        "password on a command line",
        ("pass:", "smbclient", "rpcclient", "winexe", "impacket", "crackmapexec", "nxc "),
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
        (),
        r"(?<![A-Za-z0-9+.-])https?://(?P<token>[A-Za-z0-9_-]{20,250})@(?![a-z0-9.-]{0,60}sentry)",
    ),
    (
        "password of a login",
        (
            "cred",
            "login",
            "log in",
            "basic auth",
            "account",
            "zugang",
            "logg",
            "учёт",
            "доступ",
            "账号",
            "帐号",
        ),
        r"(?i)(?:\b(?:creds?|credentials|log-?ins?|log in with|logged in as|basic[ -]auth|accounts?|zugangsdaten|zugang)\b|учёт\w{0,10}|доступ|账号|帐号)"
        r"(?:[ ](?:is|are|for|to|at|on|of|für|zu|к|для|на)\b[^\n:=|]{0,60}?)?[ ]{0,2}(?:[:=：]|->|=>|→|–|—|-)?[ ]{0,3}"
        r"[\"'`]?[A-Za-z0-9_.@+\\-]{1,60}[\"'`]?[ ]{0,2}[/|,:][ ]{0,2}[\"'`]?(?P<strong>[^\s\"'`]{8,100})",
    ),
    (
        "password of a login",
        ("auth", "login("),
        r"(?i)(?:\bauth[ ]?=[ ]?|HTTP(?:Basic|Digest)Auth|\.login|\.authenticate)\([ ]?[\"'][^\"'\n]{1,80}[\"'],[ ]?[\"'](?P<value>[^\"'\s]{6,100})[\"']",
    ),
    (
        "password of a login",
        ("@",),
        r"(?<=[A-Za-z0-9_.-]):(?P<strong>[^\s/@:\"'<>]{8,100})@[A-Za-z0-9-]{1,60}\.[A-Za-z0-9]",
    ),
    (
        "TOTP secret",
        ("totp", "2fa", "mfa", "otp", "authenticator", "authy", "seed", "secret"),
        r"(?<![A-Za-z])(?i:totp|2fa|mfa|otp|authenticator|authy|seed|secret(?:[ ]key)?)(?![A-Za-z])[^\n]{0,24}?(?<![A-Za-z0-9])(?P<is>(?=[A-Z]{0,40}[2-7])[A-Z2-7]{16,64})(?![A-Za-z0-9])",
    ),
    (
        "password of a network",
        ("wifi", "wi-fi", "wlan", "router", "ssid", "fritz"),
        r"(?i)(?:wi-?fi|wlan|router|ssid|fritz\W?box)[^\n]{0,60}?(?:key|schlüssel|pass\w{0,10}|pw|kennwort)[ :=]{1,3}(?P<is>[0-9]{8,24})(?![0-9A-Za-z])",
    ),
    ("Stellar secret key", (), r"(?<![A-Za-z0-9])S[A-Z2-7]{55}(?![A-Za-z0-9])"),
    (
        "password in a QR text",
        ("wifi:",),
        r"(?i)\bwifi:(?=[^\n]{0,100}?;P:|P:)[^\n]{0,100}?\bP:(?P<value>[^;\s]{5,100})",
    ),
    (
        "PIN",
        ("pin ", "pin-", "pincode", "пин"),
        r"(?:(?<![A-Za-z])(?:PIN|Pin-?[Cc]ode|PIN-?[Cc]ode)[ ](?:for|of|to|der|des|vom|von|zur|zum|für|de|del|della|du)[ ][^\n:=0-9.,;]{1,30}?(?:[ ](?:is|ist|es|est|è)[ ]|[ ]?[:=][ ]?)"
        r"|(?<![А-Яа-яЁё])(?i:пин)(?:[- ]?(?i:код))?(?:[ ][^\n:=0-9.,;]{1,30}?)?(?:[ ]?[:=—–-][ ]?|[ ]))(?P<is>[0-9]{4,8})(?![0-9A-Za-z.-])",
    ),
    (
        "code of a door or a card",
        (
            "alarm",
            "door",
            "gate c",
            "entry c",
            "entrance c",
            "garage",
            "safe c",
            "safe's",
            "lock c",
            "vault c",
            "elevator",
            "lift c",
            "security c",
            "voicemail",
            "sim c",
            "sim-c",
            "unlock c",
            "pairing",
            "one-time c",
            "türcode",
            "tür-code",
            "hauscode",
            "torcode",
            "tresor",
            "sicherheitscode",
            "sicherheits-",
            "combination",
            "digicode",
            "cvv",
            "cvc",
            "puk",
            "tan",
            "код",
            "código",
            "code de",
            "code du",
            "门禁",
            "密码锁",
            "コード",
            "番号",
        ),
        r"(?i)(?:(?<![a-z])(?:alarm|door|gate|entry|entrance|garage|safe|lock|vault|elevator|lift|security|voicemail|sim|unlock|pairing|one-time|tür|haus|tor|tresor|alarmanlagen|sicherheits)"
        r"(?:[ '’-]?s)?[ -]?(?:code|combination|key ?code)|(?<![a-z])(?:cvv2?|cvc2?|puk|tan|digicode)|код[ ](?:от[ ])?(?:двери|домофона|ворот|сейфа|сигнализации|подъезда)|código[ ]de[ ](?:la[ ]|el[ ])?(?:puerta|alarma|caja)"
        r"|code[ ](?:de[ ](?:la[ ]|l['’])?|du[ ])(?:porte|portail|alarme|immeuble|coffre)|门禁码|密码锁|(?:ドア|玄関|オートロック)の?(?:コード|番号))"
        r"(?![a-z])(?:(?:[ ][^\n0-9.;?!:=]{1,30}?)?(?:[ ](?:is|ist|es|est|was)[ ]|[ ]?[:：=—–-]>?[ ]?|[ ]?[是は][ ]?)|[ ]|(?<=[码锁]))[#*]?(?P<is>[0-9]{3,10}[A-Z]?|[0-9]{1,2}(?:-[0-9]{1,2}){2,3})(?![0-9A-Za-z.%-]|[ ]?%)",
    ),
    (
        "recovery code",
        (
            "recovery c",
            "recovery-c",
            "recovery k",
            "recovery-k",
            "recovery t",
            "recovery p",
            "backup c",
            "backup-c",
            "backup k",
            "backup t",
            "rescue c",
            "rescue k",
            "wiederherstellungsc",
            "wiederherstellungss",
            "notfallc",
            "backup co",
            "backupc",
            "back-up",
            "резервн",
            "восстановления",
            "备份",
            "恢复",
            "备用",
            "バックアップ",
            "リカバリ",
            "復旧",
            "recuperación",
            "respaldo",
            "récupération",
            "secours",
            "scratch c",
            "emergency k",
            "emergency c",
            "one-time p",
            "one-time c",
            "einmalc",
            "2fa",
            "mfa",
            "two-factor",
        ),
        r"(?i)(?:\b(?:recovery|back-?up|rescue|emergency|scratch|one-time)[ -]?(?:code|key|kit|token|pin|password)s?(?![a-z])|\b(?:2fa|mfa|two-factor)[ -](?:backup|recovery|code)s?(?![a-z])|(?:wiederherstellungs|notfall|backup-?|einmal)[ -]?(?:code|schlüssel)s?"
        r"|(?:резервн\w{1,4}[ ]код\w{0,3}|код\w{0,3}[ ]восстановления)|(?:备份|恢复|备用)(?:码|代码|密钥)|(?:バックアップ|リカバリー?|復旧)の?(?:コード|キー)|códigos?[ ]de[ ](?:recuperación|respaldo)|(?:codes?|clés?)[ ]de[ ](?:récupération|secours))"
        r"(?:(?:[ ](?:for|of|to|für|für|para|pour|de|для|от)[ ][^\n0-9.;?!:=]{1,40}?|[ ]?\([^)\n]{1,40}\))?(?:[ ](?:is|are|ist|sind|es|son|est|sont)[ :]|[ ]?[:：=是は—–-]|[ ]?\n)|[ ])\s{0,4}(?:[-*•][ ]|[0-9]{1,2}[.)][ ])?[\"'`]?"
        r"(?P<is>(?=[A-Za-z -]{0,40}[0-9])(?![0-9]{4}-[0-9]{2}-[0-9]{2})(?:(?-i:(?=[A-Z0-9]{4,8}(?![a-z])|[a-z]{0,7}[0-9]))[A-Za-z0-9]{4,8}(?:[ -](?-i:(?=[A-Z0-9]{4,8}(?![a-z])|[a-zA-Z]{0,7}[0-9]))[A-Za-z0-9]{4,8}){1,13}|(?=[A-Za-z]{0,15}[0-9][A-Za-z0-9]{0,15}[0-9])[A-Za-z0-9]{8,64}))(?![A-Za-z0-9])",
    ),
    (
        "recovery key",
        (),
        r"(?<![A-Za-z0-9-])(?:(?:[0-9]{6}-){7}[0-9]{6}|(?=[A-Z-]{0,40}[0-9])(?=[0-9-]{0,40}[A-Z])(?:(?:[A-Z0-9]{4}-){5,7}[A-Z0-9]{4}|(?:[A-Z0-9]{5}-){4,5}[A-Z0-9]{5}))(?![A-Za-z0-9-])",
    ),
    (
        "TOTP secret",
        (
            "totp",
            "2fa",
            "mfa",
            "otp",
            "authenticator",
            "app password",
            "app-pass",
            "two-factor",
            "app-specific",
        ),
        r"(?i)(?<![a-z])(?:totp|2fa|mfa|otp|authenticator|two-factor|app(?:-specific)?[ -]?passwords?)(?![a-z])[^\n:=]{0,40}?(?:[ ]is|[:=])?[ ]{1,3}[\"'`]?(?P<is>[a-z2-7]{4}(?:[ -][a-z2-7]{4}){3,7})(?=[\"'`.,;)]|\s*$|\n)",
    ),
    (
        "PIN",
        ("pin", "passcode", "暗証番号"),
        r"(?:[Pp](?<![A-Za-z].)(?<!(?i:gpio)[ ]p)(?<!(?i:adc|dac|pwm)[ ]p)(?<!(?i:analog)[ ]p)(?i:in|asscode)(?:(?:[ _-]?(?:nr|number|no))?[ ]?[:：=][ ]?|(?<=passcode)[ ]|(?<=PIN)(?<!GPIO PIN)[ ]|(?:(?<=[,;/(+&] pin)|(?<=[,;/(+&] Pin)|(?<=[(]pin)|(?<=[(]Pin)|(?<=and pin)|(?<=with pin)|(?<=my pin)|(?<=bank pin)|(?<=card pin)|(?<=sim pin)|(?<=code pin))[ ](?=[0-9]{4,8}[.]?(?:[,;)/\"'`]|\s*$|\n)))|暗証番号[ ]?[:：=][ ]?)(?P<is>[0-9]{4,8})(?![0-9A-Za-z-]|\.\w)",
    ),
    (
        "private key (hex)",
        (),
        rf"(?i)(?<![a-z])(?:private|secret|priv|signing|master|wallet|account)?[ _-]?(?<!public[ _-])(?<!verifying[ _-])(?<!verify[ _-])(?<!cache[ _-])(?<!pub[ _-])(?:(?:key|seed|secret)\b|(?<=private)|(?<=priv)|(?:{'|'.join(f'(?<={owner} )' for owner in WALLETS)})pk\b|(?<![a-z_])pk(?:(?==)|[ ](?:(?:of|for)[ ])?(?:(?:my|the|our)[ ])?(?:{'|'.join(WALLETS)})\b(?:[ ](?:wallet|account)\b)?))[^\n0-9a-f]{{0,24}}"
        r"(?:0x)?[0-9a-f]{64}(?:[0-9a-f]{32}|[0-9a-f]{64})?(?![0-9a-f])",
    ),
    (
        "private key (WIF)",
        (),
        r"(?<![1-9A-HJ-NP-Za-km-z0OIl_/-])(?:5[1-9A-HJ-NP-Za-km-z]{50}|[KL][1-9A-HJ-NP-Za-km-z]{51})(?![A-Za-z0-9_-])",
    ),
    ("private key (numbers)", ("[",), r"\[\s{0,4}(?:[0-9]{1,3}\s{0,4},\s{0,4}){63}[0-9]{1,3}\s{0,4}\]"),
    ("private key (JWK)", ('"kty"',), r"\"d\"\s{0,4}:\s{0,4}\"[A-Za-z0-9_-]{40,2000}\""),
)

#: Further names of secrets in sentences: a service key or token, a PIN.
SPOKEN_NAMES: Final = (
    *(f"{owner}{gap}{name}" for owner in ("api", "access", "auth", "secret", "private", "license", "client", "master", "encryption", "signing", "webhook")
      for gap in ("", " ", "-") for name in ("key", "secret", "token")),
    "token", "secret", "key", "pin", "pin code", *TOKEN_NAMES,
)  # fmt: skip
#: The part of a sentence after the name of a secret: a few words, a verb or sign, and the secret as one word
#: (`spoken`) or as quoted words (`phrase`).
SENTENCE: Final = (
    r"(?i)(?![A-Za-z])(?:[^\n:=.,;?!：\]]{0,40}?"
    r"(?:[ ](?:is|was|lautet|ist|war|wurde|es|fue|est|é|è|era|to|zu|jest|je|är|er|on|bol|oli|это|был|auf|на|naar)(?: now| jetzt| ahora)?[ :]{1,3}|['’]s(?: now)?[ :]{1,3}|[ ]?(?:是|为|為|は|은|는|을|를|を|が)[ :：「]{0,2}|「)"
    r"|(?:[ ](?:for|of|to|on|at|in|für|zum|zur|vom|von|beim|der|des|im|de|del|della|para|pour|du|от|для|к|на|до|в|od|do|voor|van|för|til)[ ][^\n:=.,;?!：\]]{1,40}?|[ ][(\[][^)\]\n]{1,30}[)\]]|[ ](?:такой|itself|selbst|actual|now)|[ ][a-zA-Z]{2,12}(?=[ ]:)|[\u3000-\u9fff ]{0,12})"
    r"[ ]?(?:[:：—–]|=+>?|-+>|→)[ ]{0,2})"
    r"(?:[\"“„«「](?P<phrase>[^\"”“»」\n]{4,80}[ ][^\"”“»」\n]{1,80})[\"”“»」]|[\"'`“„«「]?(?P<spoken>[^\s\"'`”」]{4,100}))"
)
#: Circuit parts, whose pins are not secrets; and words before "pin" that identify a pin of a circuit.
CIRCUIT_PARTS: Final = _words(
    """
    adc buzzer capacitor dac diode encoder gpio i2c joystick led leds mosfet motor motors photoresistor potentiometer pwm relay relays
    resistor sensor sensors servo servos solenoid spi stepper thermistor transistor uart
    """
)
CIRCUIT_PINS: Final = _words("adc analog dac gpio pwm")
#: A password before its name in a sentence.
BEFORE_NAME: Final = r"(?<![^\s\"'`(])(?P<strong>[^\s\"'`]{8,100})[\"'`]?[ ](?:as|is|ist|als|—)[ ](?:(?:the|its|my|our|your|his|her|das|mein|unser)[ ])?(?:[a-z-]{2,16}[ ])?$"
#: A password without a verb, after its purpose.
AFTER_PURPOSE: Final = (
    r"(?i)(?:[ ](?:[а-яё]{3,20}[ ]){1,2}|[ ](?:for|of|to|on|at|für|zum|zur|vom|von|del|de|para|pour|du|от|для|к|на|do|od|voor|för|til)[ ](?:[^\s:=.,;?!\"'`]{1,20}[ ]){0,2}"
    r"(?!(?:users?|accounts?|logins?|hosts?|servers?|machine|benutzer|konto|usuario|cuenta|пользователя|сервера|аккаунта|хоста)[ ])[^\s:=.,;?!\"'`]{1,20}[ ])"
    r"(?P<bare>[^\s\"'`]{7,80})(?=[.,;)]?(?:\s|$))(?![ ][a-z])"
)

#: Endings of the names of secrets in assignments, longest first. Digits and an environment may follow.
SECRET_NAMES: Final = (
    *PASSWORD_NAMES,
    "secret", "secrets", "token", "apikey", "authkey", "authtoken", "accesstoken", "secretkey", "privatekey", "credential", "credentials", "mnemonic", "pepper",
)  # fmt: skip
#: Words that make a following `key` the name of a secret.
KEY_OWNERS: Final = _words(
    """
    access account admin aes anthropic api app application auth aws azure bot cipher cookie crypto decryption
    deploy encryption functions gcp google gpg hmac host ingest jwt license master openai pgp priv private root
    secret server service session shared sign signing ssh storage stripe subscription wallet webhook write
    """
)
#: Words that make a following `key` the name of something else than a secret.
KEY_OTHERS: Final = _words(
    """
    block cache column composite content dedup deduplication dict file foreign hash hot idempotency index lock lookup map message object
    partition primary pub public queue range registry routing row s3 shard shortcut sort storage the this unique verify verifying
    """
)
#: Words that may follow the ending of a secret's name.
NAME_TAILS: Final = _words(
    """
    1 2 3 base dev development live main new old prod production staging string test text v1 v2 value
    """
)
#: A name with one of these words is public, or is about a secret.
PUBLIC_WORDS: Final = _words(
    """
    age arn budget cache cached column completion continuation count csrf cursor endpoint expired expires expiry
    field fields file filename format hash hashed header hint id ids input label len length limit manager max min
    mode name names next output page path pattern per placeholder policy prompt provider public publishable ref
    regex reset rotation size sync ttl type types uri url usage used uses xsrf
    """
)
#: A value that consists mostly of these words is a placeholder.
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
#: Quoted words with one of these are about a password, and not a password.
PHRASE_WORDS: Final = _words(
    """
    allowed asked ask auth authentication authorization blank cannot changed character characters chars confirm current days digits does empty
    enter expired expires failed field forgot generated here hidden incorrect input insert invalid keep kept know least length letters
    long login managed manager match maximum min minimum mismatch missing must never new not old one only optional password passwords
    passwort passphrase per please prompt protected random repeat required reset same secret see set short should shown sign
    site somewhere stored string strong token type unknown update use user username valid value vault wrong your
    contraseña senha mot passe kennwort geben eingeben zeichen stellen bitte muss ungültig falsch obligatoria caracteres caractères olvidado
    пароль пароля введите забыли неверный символов должен
    """
)
#: Words that are common in sentences and rare in passphrases.
SENTENCE_WORDS: Final = _words(
    """
    a am an and are as at be been but by can could did do for from had has have he her his how i if in into is it its just like me no of off on
    or our out she so some than that the their them then there they this to too up was we were what when where which who will with would yes
    you der die das ein eine und ist im in mit von zu den nicht el la los las y es en de con un una por para le les et est dans du des il
    """
)
#: Names of methods that follow "is" in sentences about passwords.
METHODS: Final = (
    r"(?i)(?:sha-?[0-9]|md[45]|base-?[0-9]{2}|utf-?[0-9]|argon2|bcrypt|scrypt|pbkdf2|aes-?[0-9]|rsa-?[0-9]|ed25519|x25519|blake[23]|"
    r"[0-9]+[- ]?(?:char|byte|bit|digit|day|hour|min|sec|word|letter)|v?[0-9]+(?:\.[0-9]+)*[.,;]?$|[0-9]{1,3}[+%]?$|oauth|1password|case-)"
)

#: Text directly before a long public token.
PUBLIC_BEFORE: Final = (
    r"(?i)(?<![a-z])(?:sha-?[0-9]{1,3}(?:-|:|=)|h1:|did:[a-z0-9]{2,10}:|(?:next|page|cursor|continuation|sync)\w{0,20}[\"'`]?[ \t]{0,4}[:=][ \t]{0,4}[\"'`]?|(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp[0-9]{3}|sk-ssh-ed25519@openssh\.com)[ ]|base64,|"
    r"(?:hash|digest|checksum|integrity|fingerprint|cid|commit|etag|nonce|signature|sig|address|pubkey|public[ _-]?key|publickey|version|"
    r"build(?:[ _-]?id)?|revision|tree|object|blob|oid|u?uid|guid|account|tx|transaction|merkle|root|block|content|image|data|id|ref|rev|sha|md5|"
    r"certificate|cert|peer|node|multihash|keyid|thumbprint|state|cursor|page|next|recipient|salt|iv|proof|pk|vk|verify(?:ing)?[ _-]?key)[\"'`]?[ \t]{0,4}[:=]?[ \t]{0,4}[\"'`(]?)$"
)
#: Text before `0x` and 64 hex digits that are a hash, not a key.
HASH_BEFORE: Final = (
    r"(?i)(?:public|pub|pubkey|pub_key|public_key|verif\w{1,6}|tx|txn|transaction|hash|block|root|digest|commit|topic|slot|keccak\w*|sha\w*|checksum|state|event|receipt|proof|selector|bytes32|cid|"
    r"merkle|salt|signature|sig|domain|separator|id|contract|storage)\b[^\n]{0,24}$"
)
