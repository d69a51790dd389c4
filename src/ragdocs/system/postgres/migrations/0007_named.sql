-- Lets a search pass over the postings of a term that nearly every document has: what such a term
-- adds for standing in a text is little and known, only for standing in a title or name it is more.

CREATE INDEX postings_named ON postings (scope, term, doc_id) INCLUDE (named)
    WHERE named > '1e-8'::real;
