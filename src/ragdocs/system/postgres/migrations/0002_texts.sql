-- Texts with their history and trash, the feed of what changed, accesses and summaries.

-- Exact bytes, once for each content: those of texts, of earlier texts and of the trash.
CREATE TABLE bodies (
    scope  int NOT NULL REFERENCES scopes ON DELETE CASCADE,
    -- SHA-256; its first 16 hexadecimal digits are the version that callers see.
    digest bytea NOT NULL,
    data   bytea NOT NULL,
    PRIMARY KEY (scope, digest)
);

-- The order in which change sets are made. A number is drawn under the locks of its texts, so that
-- the change sets of one text are in the order in which they were made.
CREATE SEQUENCE change_numbers;
GRANT USAGE ON SEQUENCE change_numbers TO ragdocs_member;

CREATE TABLE texts (
    scope       int NOT NULL REFERENCES scopes ON DELETE CASCADE,
    path        text COLLATE "C" NOT NULL,
    -- The path as file systems see it that ignore case or Unicode form: a second one is refused.
    folded      text COLLATE "C" NOT NULL,
    digest      bytea NOT NULL,
    size        int NOT NULL,
    modified_at timestamptz NOT NULL,
    change_set  bigint NOT NULL,
    PRIMARY KEY (scope, path),
    UNIQUE (scope, folded),
    FOREIGN KEY (scope, digest) REFERENCES bodies
);

-- How folders are spelled, so that two that differ only in case are refused.
CREATE TABLE folders (
    scope  int NOT NULL REFERENCES scopes ON DELETE CASCADE,
    folded text COLLATE "C" NOT NULL,
    path   text COLLATE "C" NOT NULL,
    PRIMARY KEY (scope, folded)
);

CREATE TABLE change_sets (
    scope      int NOT NULL REFERENCES scopes ON DELETE CASCADE,
    change_set bigint NOT NULL,
    -- Drawn by the writer: if the connection is lost, it shows whether the change set was made.
    token      uuid NOT NULL UNIQUE,
    made_at    timestamptz NOT NULL,
    verb       text NOT NULL,
    author     text NOT NULL,
    PRIMARY KEY (scope, change_set)
);

CREATE TABLE revisions (
    scope      int NOT NULL,
    change_set bigint NOT NULL,
    position   int NOT NULL,
    path       text COLLATE "C" NOT NULL,
    before     bytea,
    after      bytea,
    size       int NOT NULL,
    PRIMARY KEY (scope, change_set, position),
    FOREIGN KEY (scope, change_set) REFERENCES change_sets ON DELETE CASCADE,
    FOREIGN KEY (scope, before) REFERENCES bodies (scope, digest)
);
CREATE INDEX revisions_of_path ON revisions (scope, path, change_set);
-- Whether a body is still needed.
CREATE INDEX texts_of_body ON texts (scope, digest);
CREATE INDEX revisions_of_body ON revisions (scope, before);

CREATE TABLE trash (
    scope        int NOT NULL REFERENCES scopes ON DELETE CASCADE,
    path         text COLLATE "C" NOT NULL,
    original     text COLLATE "C" NOT NULL,
    digest       bytea NOT NULL,
    discarded_at timestamptz NOT NULL,
    PRIMARY KEY (scope, path),
    FOREIGN KEY (scope, digest) REFERENCES bodies
);
CREATE INDEX trash_of_body ON trash (scope, digest);

-- A reader asks for the transactions that its last snapshot did not show. Numbers that are drawn
-- in one order and committed in another would hide some from a reader of "all above the last".
CREATE TABLE feed (
    scope int NOT NULL REFERENCES scopes ON DELETE CASCADE,
    xid   xid8 NOT NULL DEFAULT pg_current_xact_id(),
    path  text COLLATE "C" NOT NULL,
    at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (scope, xid, path)
);

-- Up to which transaction the feed of a scope was pruned.
CREATE TABLE feed_horizons (
    scope int PRIMARY KEY REFERENCES scopes ON DELETE CASCADE,
    xid   xid8 NOT NULL
);

CREATE TABLE accesses (
    scope       int NOT NULL REFERENCES scopes ON DELETE CASCADE,
    access      bigint GENERATED ALWAYS AS IDENTITY,
    memory_id   text COLLATE "C" NOT NULL,
    accessed_at timestamptz NOT NULL,
    kind        text NOT NULL,
    score       double precision,
    query       text NOT NULL,
    PRIMARY KEY (scope, access)
);

CREATE TABLE access_counts (
    scope     int NOT NULL REFERENCES scopes ON DELETE CASCADE,
    kind      text COLLATE "C" NOT NULL,
    memory_id text COLLATE "C" NOT NULL,
    count     bigint NOT NULL,
    last_at   timestamptz NOT NULL,
    PRIMARY KEY (scope, kind, memory_id)
);

CREATE TABLE summaries (
    scope      int NOT NULL REFERENCES scopes ON DELETE CASCADE,
    summary    bigint GENERATED ALWAYS AS IDENTITY,
    run_id     text NOT NULL,
    step_id    text NOT NULL,
    written_at timestamptz NOT NULL,
    -- The time as it was written, and the bytes of the line that a file would have.
    timestamp  text NOT NULL,
    body       text NOT NULL,
    tags       text[] NOT NULL,
    size       int NOT NULL,
    PRIMARY KEY (scope, summary)
);
CREATE INDEX summaries_by_time ON summaries (scope, written_at, summary);

CALL protect_scoped('bodies');
CALL protect_scoped('texts');
CALL protect_scoped('folders');
CALL protect_scoped('change_sets');
CALL protect_scoped('revisions');
CALL protect_scoped('trash');
CALL protect_scoped('feed');
CALL protect_scoped('feed_horizons');
CALL protect_scoped('accesses');
CALL protect_scoped('access_counts');
CALL protect_scoped('summaries');

-- Whoever may read is counted, too.
CREATE POLICY noted ON accesses FOR INSERT TO ragdocs_member
    WITH CHECK (scope IN (SELECT readable_scopes()));
CREATE POLICY counted ON access_counts FOR INSERT TO ragdocs_member
    WITH CHECK (scope IN (SELECT readable_scopes()));
CREATE POLICY recounted ON access_counts FOR UPDATE TO ragdocs_member
    USING (scope IN (SELECT readable_scopes()))
    WITH CHECK (scope IN (SELECT readable_scopes()));
