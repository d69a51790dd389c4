import json
def test_probe(project, connect):
    project.doc("a.md", "# Auth\n\nTokens expire.\n\n## Refresh\n\nrotate often\n")
    s = connect()
    print(s.instructions[:30])
    for n,a in [("create_memory", dict(filename="a", content="hello [[src/a.py]]", tags=["x","X"," y "])),("create_memory", dict(filename="a", content="hello", tags=[])),
      ("create_memory", dict(filename="b", content="a\ud800", tags=[])),
      ("create_memory", dict(filename="b", content="a\x00", tags=[])),
      ("create_memory", dict(filename="b\ud800", content="a", tags=[])),
      ("create_memory", dict(filename="b", content="---\ntype: fact\ntags: [own]\nextra: 1\n---\n\nbody", tags=["given"])),
      ("create_memory", dict(filename="c", content="---\ntype: [fact\n---\n\nbody", tags=["given"])),
      ("create_memory", dict(filename="c", content="z", tags=["given\n"])),
      ("create_memory", dict(filename="c", content="z", tags="given")),
      ("create_memory", dict(filename="c", content="z", tags=None)),
      ("create_memory", dict(filename="c", content="z")),
      ("create_memory", dict(filename="c", content="z", tags=[1])),
      ("create_memory", dict(filename="c", content="z", tags=[], type="x")),
      ("read_memory", dict(filename="b")),
      ("update_memory", dict(filename="b", content="new\n")),
      ("append_memory", dict(filename="b", content="more", expected_version="123")),
      ("append_memory", dict(filename="b", content="more")),
      ("read_memory", dict(filename="b")),
      ("search_memories", dict(query="hello", limit=0)),
      ("search_memories", dict(query="hello", limit=51)),
      ("search_memories", dict(query="hello", limit="x")),
      ("search_memories", dict(query="hello", tags=["x"])),
      ("search_memories", dict(query="")),
      ("search_memories", dict(query="hello")),
      ("search_linked_memories", dict(query="hello", target_document="src/a.py")),
      ("get_memory_stats", {}),
      ("merge_memories", dict(source_files=["a","b"], target_file="m", summary_content="sum\x00")),
      ("merge_memories", dict(source_files=["a","b"], target_file="m", summary_content="sum\ud800")),
      ("merge_memories", dict(source_files=["a","zz"], target_file="m", summary_content="sum")),
      ("merge_memories", dict(source_files=[], target_file="m", summary_content="sum")),
      ("merge_memories", dict(source_files=["a"], target_file="b", summary_content="sum")),
      ("merge_memories", dict(source_files=["a","b"], target_file="m", summary_content="sum")),
      ("delete_memory", dict(filename="m")),
      ("delete_memory", dict(filename="m")),
      ("search_docs", dict(query="tokens",explain=True)),
      ("read_doc", dict(path="docs:docs/a#refresh")),
      ("index_status", {}), ("suggest_memory_merges", {}),("nope", {}),
      ]:
        try: r = s.raw(n, **a)
        except Exception as e: print("EXC", n, a, type(e), e); continue
        print("ERR" if r.is_error else "ok ", n, r.content[0].text[:500], json.dumps(r.structured_content)[:700] if r.structured_content else "")
