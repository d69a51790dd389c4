-- Lets a server keep in memory what it has read and prove that it still holds.
--
-- Every version of a document has a random mark, and the totals of a scope have the sum of the marks
-- of all documents: whoever has documents with that sum has the present ones. `touched` only says
-- where to look for what has changed; its rows are dropped after some minutes.

ALTER TABLE documents ADD COLUMN mark bigint NOT NULL DEFAULT 0;

CREATE TABLE touched (
    scope     int NOT NULL,
    written   xid8 NOT NULL DEFAULT pg_current_xact_id(),
    at        timestamptz NOT NULL DEFAULT now(),
    documents bigint[] NOT NULL
);
CREATE INDEX touched_written ON touched (scope, written);
CALL protect_scoped('touched');

CREATE FUNCTION forget_touched() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM touched WHERE scope = OLD.scope;
    RETURN OLD;
END
$$;
CREATE TRIGGER forget_touched AFTER DELETE ON indexes
    FOR EACH ROW EXECUTE FUNCTION forget_touched();
