import { bug, TrawlError } from '../../base/errors.ts';
import { agentLightning } from './agent-lightning.ts';
import { asearcher } from './asearcher.ts';
import { asearcherAccess } from './asearcher-access.ts';
import { browseCompPlus } from './browsecomp-plus.ts';
import { deepResearchGym } from './deep-research-gym.ts';
import type { Dialect, SearchDialect } from './dialect.ts';
import { foldAgent, foldAgentOpen } from './foldagent.ts';
import { dsServe, massiveServe } from './massive-serve.ts';
import { nativePassages } from './native-passages.ts';
import { nativeScore } from './native-score.ts';
import { nativeSearch } from './native-search.ts';
import { openaiEmbeddings } from './openai-embeddings.ts';
import { openResearcher, openResearcherContent } from './openresearcher.ts';
import { field, isJsonObject } from './parts/read-request.ts';
import { r1Searcher } from './r1-searcher.ts';
import { infinityRerank } from './rerank/infinity-rerank.ts';
import { rerank, rerankV1, rerankV2 } from './rerank/rerank-documents.ts';
import { searchR1Rerank, searchR1RerankText } from './rerank/search-r1-rerank.ts';
import { searchR1Reranker } from './rerank/search-r1-reranker.ts';
import { sglangRerank } from './rerank/sglang-rerank.ts';
import { stepSearchRerank } from './rerank/step-search-rerank.ts';
import { teiRerank } from './rerank/tei-rerank.ts';
import { research, researchBatch } from './research.ts';
import { rllm } from './rllm.ts';
import { rllmLegacy } from './rllm-legacy.ts';
import { searchAgentX } from './search-agent-x.ts';
import { searchR1 } from './search-r1.ts';
import { serper } from './serper.ts';
import { skyrl } from './skyrl.ts';
import { stepSearch } from './step-search.ts';
import { ultraRag } from './ultrarag.ts';
import { elasticsearch } from './unserved-elasticsearch.ts';
import { verlTool, verlToolQuestion } from './verl-tool.ts';
import { zeroSearch } from './zero-search.ts';

/**
 * The dialects in the order in which they are tried. On a shared path, a body with the keys of a dialect is in that dialect; else the
 * first dialect that claims the body parses it, so each must come before those that claim its bodies too. One dialect of the path claims
 * every body. A dialect with `onlyIfNamed` is tried only if the server is configured to prefer it, and preferred dialects come first.
 */
export const DIALECTS: readonly Dialect[] = [
  searchR1Rerank,
  searchR1RerankText,
  rllm,
  skyrl,
  stepSearch,
  asearcher,
  agentLightning,
  browseCompPlus,
  rllmLegacy,
  zeroSearch,
  searchR1,
  r1Searcher,
  ultraRag,
  serper,
  research,
  foldAgent,
  openResearcher,
  massiveServe,
  dsServe,
  researchBatch,
  deepResearchGym,
  foldAgentOpen,
  openResearcherContent,
  asearcherAccess,
  searchAgentX,
  verlToolQuestion,
  verlTool,
  openaiEmbeddings,
  nativeSearch,
  nativePassages,
  nativeScore,
  stepSearchRerank,
  searchR1Reranker,
  teiRerank,
  infinityRerank,
  rerank,
  sglangRerank,
  rerankV1,
  rerankV2,
  elasticsearch,
];

/** The dialects that `trawl eval --url` can measure. */
export const SEARCH_DIALECTS: readonly SearchDialect[] = DIALECTS.filter(
  (dialect): dialect is SearchDialect => dialect.client !== null,
);

/** Paths of the POST routes. */
export const DIALECT_PATHS: readonly string[] = [
  ...new Set(DIALECTS.filter(({ method }) => method === 'POST').map(({ path }) => path)),
];

/** Dialects that can be named: those that share a path, and the interface of Elasticsearch, which has many paths. */
export const NAMEABLE_DIALECTS: readonly string[] = [...DIALECTS.filter(sharesPath), elasticsearch].map(
  ({ name }) => name,
);

/** Whether a server with these named dialects has the interface of Elasticsearch. */
export function servesElasticsearch(names: readonly string[]): boolean {
  return names.includes(elasticsearch.name);
}

/** The paths of the dialects of a server. */
export function dialectPaths(names: readonly string[]): readonly string[] {
  return servesElasticsearch(names) ? DIALECT_PATHS.filter((path) => path !== elasticsearch.path) : DIALECT_PATHS;
}

function sharesPath({ method, path, name }: Dialect): boolean {
  return DIALECTS.some((other) => other.method === method && other.path === path && other.name !== name);
}

/** The preferred dialects of a listener for clients of one dialect: that dialect first, unless it is alone on its path. */
export function preferredFor(name: string | undefined, others: readonly string[]): readonly string[] {
  const dialect = DIALECTS.find((each) => each.name === name && each !== elasticsearch);
  const alone = dialect !== undefined && !sharesPath(dialect);
  if (name === undefined || alone) return others;
  return [name, ...others.filter((each) => each !== name)];
}

/** @throws TrawlError CONFIG_INVALID for a name that cannot be preferred or appears twice. */
export function checkDialectNames(names: readonly string[]): void {
  for (const [i, name] of names.entries()) {
    if (names.indexOf(name) < i)
      throw new TrawlError('CONFIG_INVALID', `Dialect ${JSON.stringify(name)} is given twice.`);
    if (NAMEABLE_DIALECTS.includes(name)) continue;
    throw new TrawlError(
      'CONFIG_INVALID',
      `Dialect ${JSON.stringify(name)} cannot be preferred. Expected one of ${NAMEABLE_DIALECTS.join(', ')}. ` +
        'Other dialects have their own path and are always served.',
    );
  }
}

/** The dialects of a path's POST route, in the order in which they are tried. */
export class PathDialects {
  readonly #here: readonly Dialect[];
  readonly #named: readonly Dialect[];
  readonly #others: readonly Dialect[];
  /** The only dialect of the path; null if the body decides. */
  readonly only: Dialect | null;
  /** Whether a server that is starting holds requests of one of them. */
  readonly hold: boolean;

  constructor(path: string, names: readonly string[]) {
    const here = DIALECTS.filter((dialect) => dialect.method === 'POST' && dialect.path === path);
    this.#here = here.filter(({ onlyIfNamed, name }) => !onlyIfNamed || names.includes(name));
    this.#named = names.flatMap((name) => here.filter((dialect) => dialect.name === name));
    this.#others = here.filter((dialect) => !dialect.onlyIfNamed && !names.includes(dialect.name));
    this.only = here.length === 1 ? here[0]! : null;
    this.hold = [...this.#named, ...this.#others].some(({ holdMs }) => holdMs > 0);
  }

  choose(body: unknown): Dialect {
    const keys = this.#here.find((each) =>
      each.keys?.some((key) => isJsonObject(body) && field(body, key) !== undefined),
    )?.keys;
    const fits = (candidate: Dialect, named: boolean): boolean =>
      keys === undefined ? candidate.claims(body, named) : candidate.keys === keys;
    const dialect =
      this.#named.find((candidate) => fits(candidate, true)) ??
      this.#others.find((candidate) => fits(candidate, false)) ??
      // The dialect that claims every body may be a preferred one.
      this.#named.at(-1);
    if (dialect === undefined) throw bug('No dialect claims a body');
    return dialect;
  }
}
