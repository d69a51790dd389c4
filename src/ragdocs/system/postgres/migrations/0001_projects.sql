-- Projects, who may do what in them, and the scopes that texts and passages belong to.
--
-- Verbs run under the role ragdocs_member: row rules show them what the grants of the caller allow,
-- whatever a statement asks for. Maintenance (statistics, vectors) runs as the owner of the tables.

CREATE TABLE projects (
    project    int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The address of the remote without credentials, which all clones share.
    identity   text COLLATE "C" NOT NULL UNIQUE,
    name       text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE grants (
    caller  text COLLATE "C" NOT NULL,
    -- 0 stands for every project.
    project int NOT NULL,
    role    text NOT NULL CHECK (role IN ('reader', 'writer', 'admin')),
    PRIMARY KEY (caller, project)
);

-- One lane of one project, on one branch where the lane has several.
CREATE TABLE scopes (
    scope   int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project int NOT NULL REFERENCES projects ON DELETE CASCADE,
    lane    text NOT NULL,
    branch  text NOT NULL DEFAULT '',
    UNIQUE (project, lane, branch)
);

DO $$
BEGIN
    CREATE ROLE ragdocs_member NOLOGIN;
EXCEPTION
    -- Roles belong to the whole server: another database may have made it, perhaps just now.
    WHEN duplicate_object OR unique_violation THEN NULL;
END
$$;
DO $$
BEGIN
    EXECUTE format('GRANT ragdocs_member TO %I', current_user);
EXCEPTION
    -- Two databases that are made at once change the same row of the server.
    WHEN internal_error THEN NULL;
END
$$;

-- The scopes in which the caller may do what a role allows. The functions run as the owner, because
-- a rule on grants that reads grants would ask itself.
CREATE FUNCTION allowed_projects(wanted text[]) RETURNS SETOF int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT p.project FROM projects p
    JOIN grants g ON g.project IN (p.project, 0)
    WHERE g.caller = current_setting('ragdocs.caller', true) AND g.role = ANY (wanted)
$$;

CREATE FUNCTION readable_scopes() RETURNS SETOF int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT s.scope FROM scopes s
    WHERE s.project IN (SELECT allowed_projects('{reader,writer,admin}'))
$$;

CREATE FUNCTION writable_scopes() RETURNS SETOF int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT s.scope FROM scopes s
    WHERE s.project IN (SELECT allowed_projects('{writer,admin}'))
$$;

-- Protect a table that has a column `scope`.
CREATE PROCEDURE protect_scoped(name regclass)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format(
        'CREATE POLICY readers ON %s FOR SELECT TO ragdocs_member
         USING (scope IN (SELECT readable_scopes()))', name);
    EXECUTE format(
        'CREATE POLICY writers ON %s FOR ALL TO ragdocs_member
         USING (scope IN (SELECT writable_scopes()))
         WITH CHECK (scope IN (SELECT writable_scopes()))', name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO ragdocs_member', name);
END
$$;

ALTER TABLE projects ENABLE ROW LEVEL SECURITY;
CREATE POLICY readers ON projects FOR SELECT TO ragdocs_member
    USING (project IN (SELECT allowed_projects('{reader,writer,admin}')));
ALTER TABLE scopes ENABLE ROW LEVEL SECURITY;
CREATE POLICY readers ON scopes FOR SELECT TO ragdocs_member
    USING (scope IN (SELECT readable_scopes()));
ALTER TABLE grants ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON grants FOR SELECT TO ragdocs_member
    USING (caller = current_setting('ragdocs.caller', true));
GRANT SELECT ON projects, scopes, grants TO ragdocs_member;
