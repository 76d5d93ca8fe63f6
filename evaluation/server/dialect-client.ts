/** A passage in a server's reply. */
export interface ServerPassage {
  /** Undefined if the dialect, or the server's corpus, has no ids. */
  readonly id: string | undefined;
  readonly title: string | undefined;
  /** Title and text if the dialect has both, else what it has. */
  readonly contents: string;
  /** Without the title. */
  readonly text: string;
  readonly score: number | undefined;
}

/** The passages of a query, best first; or why it failed, where the dialect fails queries apart. */
export type ServerList = readonly ServerPassage[] | { readonly failed: string };

/** A dialect from the client's side: how queries are asked, and where the passages stand in the reply. */
export interface DialectClient {
  /** The name of the dialect in src/server/dialects. */
  readonly name: string;
  /** The fields of a GET request are the parameters of its URL. */
  readonly method?: 'GET';
  /** After the server's URL. */
  readonly path: string;
  /** Whether a request can have several queries. */
  readonly batch: boolean;
  /** Whether a reply has only excerpts of the passages or pages, so that an answer may be missing from them. */
  readonly excerpts?: true;
  request(queries: readonly string[], k: number): Readonly<Record<string, unknown>>;
  /** The lists in a reply (JSON), one per query. Throws an Error for a reply of another form. */
  lists(reply: unknown): readonly ServerList[];
}
