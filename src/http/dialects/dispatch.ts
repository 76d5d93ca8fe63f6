import { bug, TrawlError } from '../../errors.ts';
import { asearcher } from './asearcher.ts';
import { asearcherAccess } from './asearcher-access.ts';
import type { Dialect } from './dialect.ts';
import { nativeSearch } from './native-search.ts';
import { openaiEmbeddings } from './openai-embeddings.ts';
import { elasticsearch, rerank, searchR1Rerank, stepSearchRerank } from './planned.ts';
import { r1Searcher } from './r1-searcher.ts';
import { research, researchBatch } from './research.ts';
import { rllm } from './rllm.ts';
import { rllmLegacy } from './rllm-legacy.ts';
import { searchAgentX } from './search-agent-x.ts';
import { searchR1 } from './search-r1.ts';
import { skyrl } from './skyrl.ts';
import { stepSearch } from './step-search.ts';
import { zeroSearch } from './zero-search.ts';

const SHARED_PATH = '/retrieve';

/** Not there yet. */
const PLANNED: readonly Dialect[] = [searchR1Rerank, stepSearchRerank, rerank, elasticsearch];

/**
 * On a shared path the first that claims a body gets it, those named for this server before the others; the last one of
 * a path claims everything.
 */
export const DIALECTS: readonly Dialect[] = [
  searchR1Rerank,
  rllm,
  skyrl,
  stepSearch,
  asearcher,
  rllmLegacy,
  zeroSearch,
  searchR1,
  r1Searcher,
  research,
  researchBatch,
  asearcherAccess,
  searchAgentX,
  openaiEmbeddings,
  nativeSearch,
  stepSearchRerank,
  rerank,
  elasticsearch,
];

export const DIALECT_PATHS: readonly string[] = [...new Set(DIALECTS.map((dialect) => dialect.path))];

/** Those that share a path, so that naming one has a meaning. */
export const NAMEABLE_DIALECTS: readonly string[] = DIALECTS.filter(
  (dialect) => dialect.path === SHARED_PATH && !PLANNED.includes(dialect),
).map(({ name }) => name);

/**
 * What is preferred on an address for the clients of the dialect of that name, if it has one. One that is alone on its path
 * is there anyway.
 */
export function preferredFor(name: string | undefined, others: readonly string[]): readonly string[] {
  const dialect = DIALECTS.find((each) => each.name === name && !PLANNED.includes(each));
  const alone = dialect !== undefined && dialect.path !== SHARED_PATH;
  if (name === undefined || alone) return others;
  return [name, ...others.filter((each) => each !== name)];
}

/** @throws TrawlError CONFIG_INVALID for a name that is none, or named twice. */
export function checkDialectNames(names: readonly string[]): void {
  for (const [i, name] of names.entries()) {
    if (NAMEABLE_DIALECTS.includes(name) && names.indexOf(name) === i) continue;
    throw new TrawlError(
      'CONFIG_INVALID',
      `${JSON.stringify(name)} is no dialect that can be preferred${names.indexOf(name) < i ? ' twice' : ''}; ` +
        `there are ${NAMEABLE_DIALECTS.join(', ')}. All others have a path of their own and are always there.`,
    );
  }
}

/** The dialects of one path, in the order they are asked. */
export class PathDialects {
  readonly #named: readonly Dialect[];
  readonly #others: readonly Dialect[];
  /** The only one of its path, which words every error there; null where the body decides. */
  readonly only: Dialect | null;

  constructor(path: string, names: readonly string[]) {
    const here = DIALECTS.filter((dialect) => dialect.path === path);
    this.#named = names.flatMap((name) => here.filter((dialect) => dialect.name === name));
    this.#others = here.filter((dialect) => !dialect.onlyIfNamed && !names.includes(dialect.name));
    this.only = here.length === 1 ? here[0]! : null;
  }

  choose(body: unknown): Dialect {
    const dialect =
      this.#named.find((candidate) => candidate.claims(body, true)) ??
      this.#others.find((candidate) => candidate.claims(body, false)) ??
      // A named dialect has left the list of the others, where it would have claimed the rest.
      this.#named.at(-1);
    if (dialect === undefined) throw bug('No dialect claims a body');
    return dialect;
  }
}
