"""Lines of every command, in scenarios that begin with the fixture project as it was made.

Each line runs twice, in two fresh copies of the project: as it is, and with --json. It is cut into
words as a shell does it; a word that begins with `stdin:` is piped in.
"""

from __future__ import annotations

GENERAL: dict[str, tuple[str, ...]] = {
    "init": ("init --project {world}/new", "init --project {world}/new", "init"),
    "index": (
        "index",
        "index --rebuild",
        "index --set=memory.enabled=false",
        "index --set nonsense",
    ),
    "search": (
        "search how are tokens refreshed",
        "search token --limit 1 --explain",
        "search retries --path docs/api",
        "search --lane memory plan --type plan --archived",
        "search --lane memory auth --tag auth --tag ui --limit 2",
        "search zzz",
        "search --lane memory x --set=memory.enabled=false",
        "search token --limit 0",
        "search",
    ),
    "status": ("status", "status --set=memory.enabled=false --set=docs.enabled=false"),
    "lint": ("lint", "lint --secrets", "lint --project {other}"),
    "verify": ("verify",),
    "check-config": (
        "check-config",
        "check-config --set no.such.key=1",
        "check-config --set memory.recency_boost_days=many",
        "check-config --project {world}/none",
    ),
    "eval": (
        "eval --most 5",
        "eval --lane memory --most 5 --keep",
        "eval --lane memory --most 5 --against words",
        "eval --against luck",
        "eval --qrels {world}/none.tsv",
    ),
    "explain": (
        'explain "how are tokens refreshed" docs/auth.md',
        'explain --lane memory "auth plan" old-deploy-plan.md',
        "explain --lane memory sessions auth-plan.md --tag ui",
        "explain x docs/none.md",
    ),
    "mcp": ("mcp --set nonsense",),
}

MEMORY: dict[str, tuple[str, ...]] = {
    "memory create": (
        'memory create new.md --type plan --tag a --tag b --content "See [[src/auth.py]]"',
        "memory create new.md --content again",
        'memory create piped "stdin:From a pipe.\n"',
        "memory create x.md --file {world}/none.txt",
        "memory create x.md --content x --set=memory.enabled=false",
    ),
    "memory update": (
        "memory update auth-plan.md --content stale --expect 0000000000000000",
        "memory update auth-plan.md --content Rewritten.",
        "memory update missing.md --content x",
    ),
    "memory append": (
        'memory append auth-plan.md "stdin:- piped\n"',
        "memory append auth-pla.md --content x",
    ),
    "memory edit": (
        'memory edit auth-plan.md --find "How long" --text "For how long"',
        'memory edit auth-plan.md --section Progress --mode append --text "- shipped"',
        "memory edit auth-plan.md --field status=archived --field owner=",
        "memory edit auth-plan.md --find zebra --text x",
        "memory edit auth-plan.md --field status",
    ),
    "memory delete": (
        "memory delete retries.md",
        "memory delete retries.md",
        "memory delete auth-plan.md --expect 0000000000000000",
    ),
    "memory read": (
        "memory read auth-plan.md",
        "memory read auth-plan.md --lines 2-3",
        "memory read missing.md",
    ),
    "memory search": (
        "memory search token handling",
        "memory search deploy --type plan --archived --explain --limit 2",
        "memory search zzz",
    ),
    "memory linked": (
        'memory linked src/auth.py --query "known problems"',
        "memory linked src/none.py",
    ),
    "memory stats": ("memory stats",),
    "completion": ("completion fish", "completion tcsh"),
    "memory merge": (
        (
            "memory merge standup/monday.md standup/tuesday.md --into standup/all.md "
            '--content "Week numbers."'
        ),
        "memory merge missing.md --into x.md --content x",
        "memory merge plain.md",
    ),
    "memory suggest": ("memory suggest", "memory suggest --type all --threshold 0.99"),
    "memory rename": (
        "memory rename auth-plan.md auth/plan.md",
        "memory rename plain.md retries.md",
        "memory rename missing.md x.md",
    ),
    "memory log": ("memory log", "memory log auth-plan.md --limit 1", "memory log missing.md"),
    "memory diff": (
        "memory diff auth-plan.md",
        "memory diff plain.md",
        "memory diff auth-plan.md 00000000",
    ),
    "memory restore": (
        "memory restore auth-plan.md",
        "memory restore wrong.md",
        "memory restore plain.md",
    ),
    "memory undo": ("memory undo", "memory undo"),
    "memory expire": ("memory expire --dry-run", "memory expire", "memory expire"),
    "memory review": ("memory review", "memory review --limit 1"),
}

OTHERS: dict[str, tuple[str, ...]] = {
    "docs search": (
        "docs search how are tokens refreshed --limit 2",
        "docs search retries --path docs/api",
        "docs search zzz",
    ),
    "docs read": (
        "docs read docs/auth.md --heading Tokens",
        "docs read docs/auth.md --lines 7-9",
        "docs read docs/aut.md",
    ),
    "entry add": (
        'entry add "Ben drinks tea" --tag people',
        'entry add "Ben drinks tea"',
        'entry add ""',
    ),
    "entry search": ("entry search dark mode", "entry search zzz"),
    "entry get": ("entry get auth-plan.md", "entry get mem_000000000000"),
    "entry delete": ("entry delete auth-plan.md", "entry delete auth-plan.md"),
    "entry stats": ("entry stats",),
    "journal synthesize": (
        (
            "journal synthesize project/api --work-context tuning "
            '--version-a "# API\n\nThree attempts.\n" --version-b "# API\n\nFour attempts.\n"'
        ),
    ),
    "remember": (
        'remember "Chose Redis" --tag auth',
        'remember "stdin:From a pipe.\n"',
        'remember ""',
    ),
    "recall": (
        "recall --limit 3",
        "recall sesions jwt --limit 2",
        "recall --since yesterday --scope global --limit 5",
        "recall calendar --timeline --limit 3",
        "recall --since whenever",
        "recall --tag nobody",
    ),
    "repo convention": (
        'repo convention "Commits say why" --content "One change each." --tag git',
        'repo convention "Use make for everything" --content "make all"',
        'repo convention x --content ""',
    ),
    "repo decision": (
        'repo decision Redis --content "Fast enough." --path src/auth.py',
        "repo decision Redis --content x --path ../out",
    ),
    "repo note": (
        'repo note --content "CI is slow." --source tool',
        "repo note --content x --source bird",
        "repo note --content x --id note-00000000",
    ),
    "repo summary": (
        "repo summary --run r --step 1 --content Done. --tag ci",
        'repo summary --run r --step "" --content x',
    ),
    "repo delete": ("repo delete note note-00000000", "repo delete weather x"),
    "repo copy": ("repo copy main feature/x", "repo copy main main", "repo copy no x"),
    "repo show": (
        "repo show",
        "repo show --kind summary",
        "repo show --path src/auth.py",
        "repo show --kind weather",
        "repo show --branch-scope sharedRepo",
    ),
    "context": (
        "context",
        "context revoke sessions --file src/auth.py --max-chars 1500",
        "context --hook SessionStart --max-chars 600",
        "context --max-chars 1",
    ),
    "commits": (
        "commits why are retries limited --limit 2",
        'commits --path src/auth.py --since "last month"',
        "commits --author nobody",
    ),
    "journal write": (
        'journal write project/api --entry "Five seconds." --summary timeouts',
        'journal write new/section "stdin:Piped.\n"',
        "journal write project/api --entry x --expect 0000000",
        "journal write project/api --entry x --overview-file {world}/none.md",
        'journal write project/api --entry ""',
        "journal write project/api --entry x --set=journal.enabled=false",
    ),
    "journal sync": (
        "journal sync",
        "journal sync --resolve project/api={world}/none.md",
        "journal sync --resolve project/api={world}/resolved.md",
        "journal read project/api",
        "journal sync",
        "journal sync --remote nowhere",
        "journal sync --resolve nonsense",
    ),
    "journal read": ("journal read project/api", "journal read project/apy"),
    "journal toc": ("journal toc", "journal toc project --depth 2", "journal toc nowhere"),
    "journal entries": (
        "journal entries project/api",
        "journal entries project/api --start 1 --length 1",
        "journal entries nowhere",
    ),
    "journal search": (
        'journal search attempts --work-context "debugging the client"',
        "journal search jitter --salience-threshold 0.1",
        "journal search zzz",
    ),
}

COMMANDS: dict[str, tuple[str, ...]] = {**GENERAL, **MEMORY, **OTHERS}
# What belongs to no command.
BESIDE: dict[str, tuple[str, ...]] = {
    "ragdocs": ("", "--version", "nonsense", "memory", "journal nothing"),
}

SCENARIOS: dict[str, tuple[str, ...]] = {**COMMANDS, **BESIDE}
