-- Who somebody is, what a credential takes away from a role, and who may add projects and members.

ALTER TABLE projects ADD COLUMN default_branch text NOT NULL DEFAULT '';

-- The name that grants are looked up by. A server logs in as the owner of the tables and says on
-- whose behalf it asks; any other login is itself, whatever it says.
CREATE FUNCTION caller_name() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT CASE
        WHEN pg_has_role(session_user, relowner, 'MEMBER')
            THEN current_setting('ragdocs.caller', true)
        ELSE session_user::text
    END
    FROM pg_class WHERE oid = 'grants'::regclass
$$;

-- A role of the caller as far as the credential of this request allows it.
CREATE FUNCTION lowered(role text) RETURNS text
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT CASE current_setting('ragdocs.role', true)
        WHEN 'reader' THEN 'reader'
        WHEN 'writer' THEN CASE role WHEN 'admin' THEN 'writer' ELSE role END
        ELSE role
    END
$$;

CREATE OR REPLACE FUNCTION allowed_projects(wanted text[]) RETURNS SETOF int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT p.project FROM projects p
    JOIN grants g ON g.project IN (p.project, 0)
    WHERE g.caller = caller_name() AND lowered(g.role) = ANY (wanted)
$$;

-- Whether the caller has a role in every project, those that are still to come too.
CREATE FUNCTION allowed_everywhere(wanted text[]) RETURNS bool
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT EXISTS (
        SELECT FROM grants g
        WHERE g.project = 0 AND g.caller = caller_name() AND lowered(g.role) = ANY (wanted)
    )
$$;

-- Return a project, which is added if the caller may write in all projects.
CREATE FUNCTION add_project(new_identity text, new_name text) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    number int;
BEGIN
    SELECT project INTO number FROM projects WHERE identity = new_identity;
    IF number IS NULL THEN
        IF NOT allowed_everywhere('{writer,admin}') THEN
            RAISE insufficient_privilege USING MESSAGE = 'only writers of all projects add one';
        END IF;
        INSERT INTO projects (identity, name) VALUES (new_identity, new_name)
            ON CONFLICT (identity) DO UPDATE SET identity = excluded.identity
            RETURNING project INTO number;
    END IF;
    RETURN number;
END
$$;

-- Return a scope of a project that the caller may write to; it is added if it is not there.
CREATE FUNCTION add_scope(of_project int, new_lane text, new_branch text) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    number int;
BEGIN
    IF of_project NOT IN (SELECT allowed_projects('{writer,admin}')) THEN
        RAISE insufficient_privilege USING MESSAGE = 'only writers of a project change it';
    END IF;
    SELECT scope INTO number FROM scopes
        WHERE project = of_project AND lane = new_lane AND branch = new_branch;
    IF number IS NULL THEN
        INSERT INTO scopes (project, lane, branch) VALUES (of_project, new_lane, new_branch)
            ON CONFLICT (project, lane, branch) DO UPDATE SET lane = excluded.lane
            RETURNING scope INTO number;
    END IF;
    RETURN number;
END
$$;

-- The first branch that is pushed, or the one that the remote names.
CREATE FUNCTION set_default_branch(of_project int, branch text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
    UPDATE projects SET default_branch = branch
    WHERE project = of_project AND project IN (SELECT allowed_projects('{writer,admin}'))
$$;

DROP POLICY own ON grants;
CREATE POLICY own ON grants FOR SELECT TO ragdocs_member USING (caller = caller_name());
-- Admins of a project see and change its members; 0 stands for every project.
CREATE POLICY admins ON grants FOR ALL TO ragdocs_member
    USING (project IN (SELECT allowed_projects('{admin}')) OR allowed_everywhere('{admin}'))
    WITH CHECK (project IN (SELECT allowed_projects('{admin}')) OR allowed_everywhere('{admin}'));
GRANT INSERT, UPDATE, DELETE ON grants TO ragdocs_member;
-- A login of its own looks whether the tables are those of its version.
GRANT SELECT ON migrations TO ragdocs_member;

-- Functions of the owner are for members only.
REVOKE ALL ON FUNCTION add_project, add_scope, set_default_branch FROM PUBLIC;
GRANT EXECUTE ON FUNCTION add_project, add_scope, set_default_branch TO ragdocs_member;
