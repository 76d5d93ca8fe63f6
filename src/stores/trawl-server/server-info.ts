import type { Column } from '../../engine/filter/column.ts';
import type { SearchSourceInfo } from '../../search/retriever.ts';
import type { SearchMode } from '../../search/search-mode.ts';

/** The server behind a `ServerRetriever`. */
export interface ServerFacts {
  readonly url: string;
  /** Version of Trawl. */
  readonly version: string;
  /** The views that limit every request; null without one. */
  readonly view: string | null;
  /** Hashes of the rows of these views, with commas in between; null without views or from an earlier version. */
  readonly viewSha256: string | null;
  /** The header x-trawl-state of the replies: a hash of version, index, models, views and filter; null from an earlier version. */
  readonly state: string | null;
}

/** An index as /v1/indexes describes it. */
export interface IndexFacts {
  readonly name: string;
  readonly generation: string;
  readonly rows: number;
  readonly modes: readonly string[];
  readonly bm25: SearchSourceInfo['bm25'];
  readonly columns: readonly Column[];
  readonly model: SearchSourceInfo['model'];
  readonly reranker: SearchSourceInfo['reranker'];
  readonly views?: readonly { readonly name: string; readonly sha256?: string }[];
}

/** The `viewSha256` of the views in `within`, which have commas in between. */
export function viewHash({ views = [] }: IndexFacts, within: string | undefined): string | null {
  if (within === undefined) return null;
  const hashes = within.split(',').map((view) => views.find(({ name }) => name === view)?.sha256);
  return hashes.includes(undefined) ? null : hashes.join();
}

export function infoOf({
  name,
  modes,
  rows,
  generation,
  bm25,
  columns,
  model,
  reranker,
}: IndexFacts): SearchSourceInfo {
  return { index: name, modes: modes as readonly SearchMode[], rows, generation, bm25, columns, model, reranker };
}
