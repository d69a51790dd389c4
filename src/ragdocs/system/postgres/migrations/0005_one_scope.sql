-- Rules on rows ask for the scopes of the caller once for every table in a statement. A search reads
-- one scope and says so: then that one is looked up, and not all that the caller may read.
-- Naming a scope only takes away: it is returned if the caller may read it.
--
-- A function of the owner runs as the owner: whoever logged in as one names the caller, any other
-- login is itself, as in caller_name(), which would cost as much again as all of this.

CREATE OR REPLACE FUNCTION readable_scopes() RETURNS SETOF int
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    asking text := CASE WHEN pg_has_role(session_user, current_user, 'MEMBER')
        THEN current_setting('ragdocs.caller', true) ELSE session_user::text END;
    named int := nullif(current_setting('ragdocs.scope', true), '')::int;
BEGIN
    IF named IS NULL THEN
        RETURN QUERY SELECT s.scope FROM scopes s
            JOIN grants g ON g.project IN (s.project, 0) WHERE g.caller = asking;
    ELSE
        RETURN QUERY SELECT s.scope FROM scopes s
            JOIN grants g ON g.project IN (s.project, 0)
            WHERE g.caller = asking AND s.scope = named;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION writable_scopes() RETURNS SETOF int
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    asking text := CASE WHEN pg_has_role(session_user, current_user, 'MEMBER')
        THEN current_setting('ragdocs.caller', true) ELSE session_user::text END;
    named int := nullif(current_setting('ragdocs.scope', true), '')::int;
BEGIN
    -- The credential of this request may allow less than the grants.
    IF current_setting('ragdocs.role', true) = 'reader' THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT s.scope FROM scopes s
        JOIN grants g ON g.project IN (s.project, 0)
        WHERE g.caller = asking AND g.role IN ('writer', 'admin')
            AND (named IS NULL OR s.scope = named);
END
$$;
