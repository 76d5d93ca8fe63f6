import { throwIfCancelled } from '../../src/base/abort.ts';
import { hybridSettings } from '../../src/search/hybrid/hybrid-settings.ts';
import { readRecords } from '../records/read-records.ts';
import type { RecordedQuery } from '../records/recorded-query.ts';
import { type ComparedQuery, comparableLists, compareGold, compareLists } from './compared-query.ts';
import type { Gold, GoldQuestions } from './gold-questions.ts';
import { type RecordedCall, recordedCall, UNUSABLE } from './recorded-call.ts';
import { Comparisons, type NotCompared, shownDifference } from './replay-report.ts';
import type { KnownPassage, ReplayTarget, TargetHit } from './replay-target.ts';
import type { KeyedCall } from './stored-answer.ts';

export interface ReplayOptions {
  readonly records: readonly string[];
  readonly target: ReplayTarget;
  readonly changes: Partial<KeyedCall>;
  /** The persistence of rank-biased overlap, between 0 and 1. */
  readonly p: number;
  readonly cutoffs: readonly number[];
  readonly gold?: GoldQuestions;
  /** Number of queries to show whose lists differ most. */
  readonly examples: number;
  readonly onProgress?: (records: number) => void;
  readonly signal?: AbortSignal;
}

const BATCH = 256;
const LAST_TURN = 100;
const MOST_GENERATIONS = 10;

export type ReplayReport = Awaited<ReturnType<typeof replayRecords>>;

/**
 * Asks the target every recorded query again and compares what it finds with what was recorded. Memory does not depend on the number of
 * records.
 *
 * @throws TrawlError of the records and of the target.
 */
export async function replayRecords(options: ReplayOptions) {
  const replay = new Replay(options);
  let batch: Asked[] = [];
  for await (const { query, text } of readRecords(options.records, { signal: options.signal })) {
    const asked = replay.take(query, text);
    if (asked !== undefined) batch.push(asked);
    if (batch.length < BATCH) continue;
    await replay.ask(batch);
    batch = [];
  }
  await replay.ask(batch);
  return replay.report();
}

interface Asked {
  readonly record: RecordedQuery;
  readonly recorded: RecordedCall;
  readonly gold: Gold | undefined;
}

interface Answered extends Asked {
  readonly hits: readonly TargetHit[];
  readonly k: number;
  readonly sameGeneration: boolean;
  /** Whether the query fails now, by itself. */
  readonly failed: boolean;
}

/** The recorded passages that were looked up, by id; null if the target cannot look up ids. */
type KnownPassages = ReadonlyMap<string, KnownPassage> | null;

interface RecordedGeneration {
  /** Whether the target has the id of one of their passages. */
  hasKnownIds: boolean;
  /** Records none of whose passages the target has. */
  readonly unknown: Comparisons;
}

class Replay {
  readonly #options: ReplayOptions;
  #records = 0;
  #answersUnknown = 0;
  #index = '';
  readonly #notCompared: Record<string, number>;
  readonly #failed = new Map<string, number>();
  readonly #failedQueries = new Map<string, number>();
  readonly #generations = new Set<string>();
  readonly #recordedGenerations = new Set<string>();
  readonly #compared: Comparisons;
  readonly #byGeneration = new Map<string, RecordedGeneration>();

  constructor(options: ReplayOptions) {
    this.#options = options;
    this.#compared = new Comparisons(options.cutoffs, options.examples);
    this.#notCompared = Object.fromEntries([...UNUSABLE, 'otherIds', 'withoutIds'].map((reason) => [reason, 0]));
  }

  /** Counts a record. Undefined if it cannot be asked again. */
  take(record: RecordedQuery, text: string): Asked | undefined {
    this.#records++;
    if (this.#recordedGenerations.size < MOST_GENERATIONS) this.#recordedGenerations.add(record.generation);
    const recorded = recordedCall(record, text);
    if (typeof recorded === 'string') {
      this.#notCompared[recorded]!++;
      return undefined;
    }
    return { record, recorded, gold: this.#options.gold?.of(record) };
  }

  async ask(batch: readonly Asked[]): Promise<void> {
    if (batch.length === 0) return;
    throwIfCancelled(this.#options.signal);
    const answered = await this.#search(batch);
    const known = await this.#lookUp(answered);
    for (const each of answered) this.#compare(each, known);
    this.#options.onProgress?.(this.#records);
  }

  async report() {
    this.#judgeUnknown();
    const turns = [...this.#compared.turns].sort(([a], [b]) => (a ?? LAST_TURN + 1) - (b ?? LAST_TURN + 1));
    return {
      records: this.#records,
      notCompared: this.#notCompared as Record<NotCompared, number>,
      /** Searches that the target refused, by the code of the error. They are not compared. */
      failed: Object.fromEntries([...this.#failed].sort()),
      /** Queries that fail now by themselves, by the code of the error. They are compared: nothing of what was found is found now. */
      failedQueries: Object.fromEntries([...this.#failedQueries].sort()),
      /** Queries of questions with golden answers for which it is not known whether a recorded passage had one. */
      answersUnknown: this.#answersUnknown,
      /** The index that was asked, and its generations: several if it was reloaded meanwhile. */
      against: { index: this.#index, generations: [...this.#generations] },
      /** The generations of the records, at most `MOST_GENERATIONS`. */
      recordedGenerations: [...this.#recordedGenerations],
      all: this.#compared.all.values,
      /** By turn, those without a recorded turn (null) last; turns from `LAST_TURN` on count as this one. */
      turns: turns.map(([turn, summary]) => ({ turn, ...summary.values })),
      differences: await this.#differences(),
    };
  }

  /** One search of the target for all records with equal settings. */
  async #search(batch: readonly Asked[]): Promise<Answered[]> {
    const { target, signal, gold } = this.#options;
    const groups = new Map<string, { call: KeyedCall; asked: Asked[] }>();
    for (const asked of batch) {
      const call = this.#changed(asked.recorded.call);
      const key = JSON.stringify(call);
      const group = groups.get(key);
      if (group === undefined) groups.set(key, { call, asked: [asked] });
      else group.asked.push(asked);
    }
    const answered: Answered[] = [];
    for (const { call, asked } of groups.values()) {
      const inputs = asked.map(({ recorded }) => recorded.input);
      const answer = await target.search(inputs, call, { texts: gold !== undefined, signal });
      if (answer.index !== '') this.#index = answer.index;
      for (const [i, outcome] of answer.outcomes.entries()) {
        if (!outcome.ok) {
          const { code, ofQuery } = outcome;
          const counts = ofQuery ? this.#failedQueries : this.#failed;
          counts.set(code, (counts.get(code) ?? 0) + 1);
          // Its passages need no look-up to be known as other ones.
          if (ofQuery) answered.push({ ...asked[i]!, hits: [], k: call.k, sameGeneration: true, failed: true });
          continue;
        }
        const { record } = asked[i]!;
        if (this.#generations.size < MOST_GENERATIONS) this.#generations.add(outcome.generation);
        const sameGeneration = record.generation === outcome.generation && outcome.hits.every(({ index }) => !index);
        answered.push({ ...asked[i]!, hits: outcome.hits, k: call.k, sameGeneration, failed: false });
      }
    }
    return answered;
  }

  /** The recorded settings with the changes. Another mode does not keep the settings of the recorded one. */
  #changed(recorded: KeyedCall): KeyedCall {
    const { changes } = this.#options;
    const { hybrid, bm25, bm25Order, ...others } = recorded;
    const isOtherMode = changes.mode !== undefined && changes.mode !== recorded.mode;
    const call = { ...(isOtherMode ? others : recorded), ...changes };
    if (call.mode !== 'hybrid') return call;
    const depth = Math.max(call.k, call.rerank?.depth ?? 0);
    return { ...call, hybrid: hybridSettings(call.hybrid ?? {}, depth) };
  }

  /** Looks up the recorded passages that the target did not find: for their texts, and to know whether it has their ids at all. */
  async #lookUp(answered: readonly Answered[]): Promise<KnownPassages> {
    const wanted = new Set<string>();
    for (const { record, hits, gold, sameGeneration } of answered) {
      const found = new Set(hits.map(({ id }) => id));
      const missing = record.ids.filter((id) => id !== null && !found.has(id)) as string[];
      const isForeign = !sameGeneration && missing.length === record.ids.length;
      if (isForeign || gold?.hasAnswer !== undefined) for (const id of missing) wanted.add(id);
    }
    if (wanted.size === 0) return new Map();
    return this.#options.target.passages([...wanted], this.#options.signal);
  }

  #compare(answered: Answered, known: KnownPassages): void {
    const { record, hits, k, gold, sameGeneration, failed } = answered;
    const { cutoffs, p } = this.#options;
    const lists = comparableLists(record, hits, sameGeneration);
    if (lists === undefined) {
      this.#notCompared.withoutIds!++;
      return;
    }
    const least = Math.min(record.k, k);
    // A query that was answered and fails now has nothing in common with its recorded list, also if that is empty.
    const found = failed
      ? { identical: false, rbo: 0, overlaps: cutoffs.map((cutoff) => (cutoff > least ? null : 0)) }
      : compareLists(lists, { cutoffs, k: least, p });
    const compared: ComparedQuery = {
      turn: record.turn === undefined ? null : Math.min(record.turn, LAST_TURN),
      gold: gold === undefined || gold.ids.size === 0 ? null : compareGold(record.ids, idsOf(hits), gold.ids),
      answer: gold?.hasAnswer === undefined ? null : this.#answers(answered, gold.hasAnswer, known),
      ...found,
    };
    if (sameGeneration) this.#compared.add(compared, record, hits);
    else {
      const generation = this.#generationOf(record);
      const ids = idsInTarget(record, hits, known);
      if (ids === 'some') generation.hasKnownIds = true;
      (ids === 'none' ? generation.unknown : this.#compared).add(compared, record, hits);
    }
  }

  #generationOf({ generation }: RecordedQuery): RecordedGeneration {
    const { cutoffs, examples } = this.#options;
    const found = this.#byGeneration.get(generation) ?? {
      hasKnownIds: false,
      unknown: new Comparisons(cutoffs, examples),
    };
    this.#byGeneration.set(generation, found);
    return found;
  }

  /** Whether the passages that the target does not have are gone from it, or only have other ids there. */
  #judgeUnknown(): void {
    for (const { hasKnownIds, unknown } of this.#byGeneration.values()) {
      if (hasKnownIds) this.#compared.addAll(unknown);
      else this.#notCompared.otherIds! += unknown.all.values.queries;
    }
    this.#byGeneration.clear();
  }

  #answers(
    { record, hits }: Answered,
    hasAnswer: (contents: string) => boolean,
    known: KnownPassages,
  ): ComparedQuery['answer'] {
    const texts = new Map(hits.map(({ id, contents }) => [id, contents]));
    const before = record.ids.map((id) => (id === null ? undefined : (texts.get(id) ?? known?.get(id)?.contents)));
    const had = before.some((contents) => contents !== undefined && hasAnswer(contents));
    if (!had && before.includes(undefined)) {
      this.#answersUnknown++;
      return null;
    }
    return { before: had, now: hits.some(({ contents }) => hasAnswer(contents)) };
  }

  /** The biggest differences, with the titles of the recorded passages. */
  async #differences() {
    const { target, signal } = this.#options;
    const { differences } = this.#compared;
    const ids = new Set(differences.flatMap(({ record }) => record.ids.filter((id) => id !== null)));
    const known = ids.size === 0 ? null : await target.passages([...ids], signal);
    return differences.map((difference) => shownDifference(difference, known));
  }
}

/** Whether the target has some of the recorded ids, or none; `unknown` if there are none, or it cannot look them up. */
function idsInTarget(
  { ids }: RecordedQuery,
  hits: readonly TargetHit[],
  known: KnownPassages,
): 'some' | 'none' | 'unknown' {
  const found = new Set(idsOf(hits));
  if (ids.some((id) => found.has(id) || (id !== null && known?.has(id) === true))) return 'some';
  return ids.length === 0 || known === null ? 'unknown' : 'none';
}

function idsOf(hits: readonly TargetHit[]): (string | null)[] {
  return hits.map(({ id }) => id);
}
