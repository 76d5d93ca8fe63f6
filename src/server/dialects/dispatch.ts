import { bug, TrawlError } from '../../base/errors.ts';
import { agentLightning } from './agent-lightning.ts';
import { asearcher, asearcherAccess } from './asearcher.ts';
import { browseCompPlus } from './browsecomp-plus.ts';
import { deepResearchGym } from './deep-research-gym.ts';
import type { Dialect, SearchDialect } from './dialect.ts';
import { foldAgent, foldAgentOpen } from './foldagent.ts';
import { jinaReader } from './jina-reader.ts';
import { dsServe, massiveServe } from './massive-serve.ts';
import { nativePassages } from './native-passages.ts';
import { nativeScore } from './native-score.ts';
import { nativeSearch } from './native-search.ts';
import { openaiEmbeddings } from './openai-embeddings.ts';
import { openResearcher, openResearcherContent } from './openresearcher.ts';
import { hasField } from './parts/read-request.ts';
import { r1Searcher } from './r1-searcher.ts';
import { infinityRerank } from './rerank/infinity-rerank.ts';
import { rerank, rerankV1, rerankV2 } from './rerank/rerank-documents.ts';
import { searchR1Rerank, searchR1RerankText } from './rerank/search-r1-rerank.ts';
import { searchR1Reranker } from './rerank/search-r1-reranker.ts';
import { sglangRerank } from './rerank/sglang-rerank.ts';
import { teiRerank } from './rerank/tei-rerank.ts';
import { research, researchBatch } from './research.ts';
import { rllm, rllmLegacy } from './rllm.ts';
import { searchAgentX, searchAgentXReset, searchAgentXStall } from './search-agent-x.ts';
import { searchR1 } from './search-r1.ts';
import { serper, serperScholar, serperScrape } from './serper.ts';
import { skyrl } from './skyrl.ts';
import { stepSearch, stepSearchRerank } from './step-search.ts';
import { teiEmbed, teiEmbedRoot, teiInfo } from './tei-embeddings.ts';
import { ultraRag } from './ultrarag.ts';
import { elasticsearch } from './unserved-elasticsearch.ts';
import { verlTool, verlToolQuestion } from './verl-tool.ts';
import { zeroSearch } from './zero-search.ts';

/**
 * The dialects in the order in which they are tried. On a shared path, a body with a key of a dialect belongs to this dialect. Any other
 * body belongs to the first dialect that claims it, so a dialect must come before every dialect that would also claim its bodies. One
 * dialect of the path claims every body. A dialect with `onlyIfNamed` is tried only if the server is configured to prefer it. Preferred
 * dialects are tried first.
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
  serperScholar,
  serperScrape,
  jinaReader,
  searchAgentX,
  searchAgentXStall,
  searchAgentXReset,
  verlToolQuestion,
  verlTool,
  openaiEmbeddings,
  teiEmbed,
  teiEmbedRoot,
  teiInfo,
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
  (dialect): dialect is SearchDialect => dialect.client !== undefined,
);

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

/** The dialects of a path's POST route. */
export class PathDialects {
  /** In the order of `DIALECTS`. */
  readonly #here: readonly Dialect[];
  /** The preferred ones, in the order of their names. */
  readonly #preferred: readonly Dialect[];
  /** The only dialect of the path; undefined if the body decides. */
  readonly only: Dialect | undefined;
  /** Whether a server that is starting holds requests of one of them. */
  readonly hold: boolean;

  constructor(path: string, names: readonly string[]) {
    const all = DIALECTS.filter((dialect) => dialect.method === 'POST' && dialect.path === path);
    this.#here = all.filter(({ onlyIfNamed, name }) => !onlyIfNamed || names.includes(name));
    this.#preferred = names.flatMap((name) => all.filter((dialect) => dialect.name === name));
    this.only = all.length === 1 ? all[0] : undefined;
    this.hold = this.#here.some(({ holdMs }) => holdMs > 0);
  }

  /** The dialect whose keys the body has, else the first that claims it. Preferred dialects are asked first. */
  choose(body: unknown): Dialect {
    const keyed = this.#here.find(({ keys = [] }) => hasField(body, ...keys));
    // If several dialects have the same keys, a preferred one gets the body.
    if (keyed !== undefined) return this.#preferred.find(({ keys }) => keys === keyed.keys) ?? keyed;
    const dialect =
      this.#preferred.find((each) => each.claims(body, true)) ??
      this.#here.find((each) => !this.#preferred.includes(each) && each.claims(body, false)) ??
      // The dialect that claims every body may be a preferred one.
      this.#preferred.at(-1);
    if (dialect === undefined) throw bug('No dialect claims a body');
    return dialect;
  }
}
