-- The index: what a search needs of the texts. All of it can be built again from them.
--
-- Texts that are only handed back are bytes, because a text of PostgreSQL can hold neither the
-- character 0 nor half characters; what is compared or ordered is text in the order of Python.

-- One row a scope. `counts` are totals without those of `tallies`, in the order of
-- engines/postgres/statistics.py; `reference` are the average lengths that bounds were made with.
CREATE TABLE indexes (
    scope       int PRIMARY KEY,
    recipe      text NOT NULL,
    encoder     text NOT NULL,
    dim         int NOT NULL,
    counts      bigint[] NOT NULL,
    reference   float8[] NOT NULL,
    calibration bytea NOT NULL DEFAULT '{}',
    -- Vectors in the graph of neighbours when it was built; 0 where there is none.
    graph       int NOT NULL DEFAULT 0
);

CREATE TABLE documents (
    -- A hash of scope and path.
    doc_id      bigint PRIMARY KEY,
    scope       int NOT NULL,
    id          text COLLATE "C" NOT NULL,
    path        text COLLATE "C" NOT NULL,
    version     text COLLATE "C" NOT NULL,
    stamp       text COLLATE "C" NOT NULL,
    -- As given, for counting, and without case, for comparing.
    kind        text COLLATE "C" NOT NULL,
    status      text COLLATE "C" NOT NULL,
    source      text COLLATE "C" NOT NULL,
    tags        text[] COLLATE "C" NOT NULL,
    kind_key    text COLLATE "C" NOT NULL,
    status_key  text COLLATE "C" NOT NULL,
    tag_keys    text[] COLLATE "C" NOT NULL,
    created_at  timestamptz,
    modified_at timestamptz,
    expires_at  timestamptz,
    importance  float8 NOT NULL,
    confidence  float8 NOT NULL,
    passages    int NOT NULL,
    link_count  int NOT NULL,
    -- Seven codes of field lengths a passage.
    lengths     bytea NOT NULL,
    -- The number under which the vector of each passage is kept, four bytes each.
    slots       bytea NOT NULL,
    card        bytea NOT NULL
);
CREATE UNIQUE INDEX documents_path ON documents (scope, path);
CREATE INDEX documents_id ON documents (scope, id);
CREATE INDEX documents_created ON documents (scope, created_at);
CREATE INDEX documents_status ON documents (scope, status_key);
CREATE INDEX documents_expiry ON documents (scope, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX documents_tags ON documents USING gin (tag_keys);

-- Passages of a document that have one text share a slot.
CREATE TABLE passages (
    doc_id     bigint NOT NULL,
    ord        int NOT NULL,
    scope      int NOT NULL,
    slot       int NOT NULL,
    digest     text COLLATE "C" NOT NULL,
    start_line int NOT NULL,
    end_line   int NOT NULL,
    headings   bytea NOT NULL,
    text       bytea NOT NULL,
    PRIMARY KEY (doc_id, ord)
);
CREATE INDEX passages_digest ON passages (scope, digest);

-- Apart from passages, so that a new vector is no new version of a row with text. The number of
-- components is that of the scope; a graph of neighbours is made for each large scope by itself,
-- because in one over all scopes a search would find mostly strangers.
CREATE TABLE vectors (
    doc_id bigint NOT NULL,
    slot   int NOT NULL,
    scope  int NOT NULL,
    emb    halfvec NOT NULL,
    PRIMARY KEY (doc_id, slot)
);
ALTER TABLE vectors ALTER COLUMN emb SET STORAGE MAIN;
CREATE INDEX vectors_scope ON vectors (scope);

-- Passages that wait for a vector, and until when somebody has promised one.
CREATE TABLE waiting (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope       int NOT NULL,
    doc_id      bigint NOT NULL,
    slot        int NOT NULL,
    digest      text COLLATE "C" NOT NULL,
    turn        int NOT NULL,
    modified_at timestamptz,
    claimed_by  text,
    claimed_until timestamptz
);
CREATE INDEX waiting_turn ON waiting (scope, turn, modified_at DESC NULLS LAST, number);
CREATE INDEX waiting_digest ON waiting (scope, digest);
CREATE INDEX waiting_doc ON waiting (doc_id);

-- One row for each term of a document. `best` is at least what the term is worth in any passage,
-- `named` at least what it adds for standing in title or name, and above 0 where the term stands
-- anywhere but in a body; `passages` have the term, `bodies` of them in their body.
CREATE TABLE postings (
    scope    int NOT NULL,
    term     text COLLATE "C" NOT NULL,
    doc_id   bigint NOT NULL,
    best     real NOT NULL,
    named    real NOT NULL,
    passages int NOT NULL,
    bodies   int NOT NULL,
    payload  bytea NOT NULL
);
ALTER TABLE postings ALTER COLUMN payload SET STORAGE MAIN;
CREATE UNIQUE INDEX postings_term ON postings (scope, term, doc_id) INCLUDE (best, named);
CREATE INDEX postings_doc ON postings (doc_id);

-- How many passages have a term; changes wait in term_tallies until they are added up, so that
-- writers never queue for the row of a common term.
CREATE TABLE terms (
    scope    int NOT NULL,
    term     text COLLATE "C" NOT NULL,
    passages int NOT NULL,
    bodies   int NOT NULL,
    PRIMARY KEY (scope, term) INCLUDE (passages, bodies)
);
CREATE TABLE term_tallies (
    scope    int NOT NULL,
    term     text COLLATE "C" NOT NULL,
    passages int NOT NULL,
    bodies   int NOT NULL
);
CREATE INDEX term_tallies_term ON term_tallies (scope, term) INCLUDE (passages, bodies);
CREATE TABLE tallies (
    scope  int NOT NULL,
    counts bigint[] NOT NULL
);
CREATE INDEX tallies_scope ON tallies (scope);

-- The names that a document goes by in links.
CREATE TABLE names (
    scope  int NOT NULL,
    name   text COLLATE "C" NOT NULL,
    doc_id bigint NOT NULL,
    PRIMARY KEY (scope, name, doc_id)
);
CREATE INDEX names_doc ON names (doc_id);

-- `target` is a name as links compare it; the link as it was written is in the card.
CREATE TABLE links (
    doc_id bigint NOT NULL,
    ord    int NOT NULL,
    scope  int NOT NULL,
    target text COLLATE "C" NOT NULL,
    PRIMARY KEY (doc_id, ord)
);
CREATE INDEX links_target ON links (scope, target);

-- Rows of the index name no scope by a foreign key: checking it would double the cost of a write.
CREATE FUNCTION forget_scope(gone int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM indexes WHERE scope = gone;
    DELETE FROM documents WHERE scope = gone;
    DELETE FROM passages WHERE scope = gone;
    DELETE FROM vectors WHERE scope = gone;
    DELETE FROM waiting WHERE scope = gone;
    DELETE FROM postings WHERE scope = gone;
    DELETE FROM terms WHERE scope = gone;
    DELETE FROM term_tallies WHERE scope = gone;
    DELETE FROM tallies WHERE scope = gone;
    DELETE FROM names WHERE scope = gone;
    DELETE FROM links WHERE scope = gone;
END
$$;
REVOKE ALL ON FUNCTION forget_scope FROM PUBLIC;
CREATE FUNCTION forget_removed_scope() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM forget_scope(OLD.scope);
    RETURN OLD;
END
$$;
CREATE TRIGGER forget_removed_scope AFTER DELETE ON scopes
    FOR EACH ROW EXECUTE FUNCTION forget_removed_scope();

CALL protect_scoped('indexes');
CALL protect_scoped('documents');
CALL protect_scoped('passages');
CALL protect_scoped('vectors');
CALL protect_scoped('waiting');
CALL protect_scoped('postings');
CALL protect_scoped('terms');
CALL protect_scoped('term_tallies');
CALL protect_scoped('tallies');
CALL protect_scoped('names');
CALL protect_scoped('links');
