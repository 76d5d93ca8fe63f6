import { createHash } from 'node:crypto';
import { usageError } from '../../src/base/errors.ts';
import { wellFormedJson } from '../../src/base/objects.ts';
import { itemError } from '../trajectories/read-items.ts';
import { roundKey } from './candidates-file.ts';
import { UtilityCheck, type UtilityCounts } from './check-utilities.ts';
import {
  EXCLUSION_RULES,
  type ExclusionRule,
  type Exclusions,
  type KnownPassage,
  SiblingPositives,
  withoutExcluded,
} from './exclusions.ts';
import { type JudgedCandidate, type JudgedRound, judgedRounds, type UtilityFiles } from './judged-rounds.ts';

/** Why a round with utilities gives no rows. */
export const RULE_DROPS = ['not-correct', 'below-threshold', 'too-few-negatives'] as const;
export type RuleDrop = (typeof RULE_DROPS)[number];

interface RuleSettings {
  /** Lowest local utility of a positive, 0 to 1. */
  readonly threshold: number;
  /** Most rows of a round; each has another positive. */
  readonly positives: number;
  /** Passages of a row: a positive and the negatives. */
  readonly groupSize: number;
}

/** The constants of Agentic-R's step 4. */
export const AGENTIC_R_RULE: RuleSettings = { threshold: 0.6, positives: 3, groupSize: 16 };

export interface ConstructSettings extends RuleSettings {
  readonly dataset: string;
  readonly seed: number;
  readonly excludeCorrect: boolean;
  readonly excludeSiblings: boolean;
  /** Excludes duplicates of positives by these texts. Default: no exclusion. */
  readonly duplicatesBy?: ReadonlyMap<number, KnownPassage>;
  /** Write the ids of the corpus instead of rows. */
  readonly corpusIds?: ReadonlyMap<number, KnownPassage>;
  /** Take the history from the candidates file, which has all queries, instead of the file of step 3-2. */
  readonly fullHistory: boolean;
}

export type ConstructCounts = Awaited<ReturnType<typeof constructRows>>;

/**
 * Makes training rows of judged candidates by the rule of Agentic-R's step 4 and passes their JSON lines to `write`, in the order of the
 * candidates file. All rows of a round have the same negatives, drawn with a seed made of `seed`, the data set, the id and the round.
 *
 * @throws TrawlError CORPUS_BAD_LINE; USAGE if a file of utilities has no round of the candidates file.
 */
export async function constructRows(
  candidates: string,
  files: UtilityFiles,
  settings: ConstructSettings,
  { write, signal }: { write: (line: string) => Promise<void>; signal?: AbortSignal },
) {
  const exclusions: Exclusions = {
    correct: settings.excludeCorrect,
    duplicatesBy: settings.duplicatesBy,
    siblings: settings.excludeSiblings ? await siblingPositives(candidates, files, settings, signal) : undefined,
  };
  const check = new UtilityCheck(files);
  const counts = {
    /** Rounds with utilities that gave no rows. */
    dropped: { 'not-correct': 0, 'below-threshold': 0, 'too-few-negatives': 0 } satisfies Record<RuleDrop, number>,
    /** Rounds that gave rows, and the rows. */
    rounds: 0,
    rows: 0,
    /** Positives of these rounds that no row has, because a round gives at most `positives` rows. */
    unusedPositives: 0,
    /** Negatives in rows with `em` 1, counted once a round. */
    correctNegatives: 0,
    /** Negatives that a rule excluded. */
    excluded: { correct: 0, duplicate: 0, sibling: 0 } satisfies Record<ExclusionRule, number>,
  };
  for await (const judged of judgedRounds(candidates, files, signal)) {
    if (!check.add(judged) || judged.problem !== undefined) continue;
    const split = splitCandidates(judged.candidates, settings);
    if (typeof split === 'string') {
      counts.dropped[split] += 1;
      continue;
    }
    const left = withoutExcluded(judged.item.question, split, exclusions);
    for (const rule of EXCLUSION_RULES) counts.excluded[rule] += left.excluded[rule];
    const wanted = settings.groupSize - 1;
    if (left.kept.length < wanted) {
      counts.dropped['too-few-negatives'] += 1;
      continue;
    }
    const key = `${settings.dataset}\0${roundKey(judged.item.id, judged.round.round_index)}`;
    const negatives = seededSample(left.kept, wanted, { seed: settings.seed, key });
    const positives = split.positives.slice(0, settings.positives);
    for (const positive of positives) {
      await write(`${wellFormedJson(trainingRow(judged, [positive, ...negatives], settings))}\n`);
    }
    counts.rounds += 1;
    counts.rows += positives.length;
    counts.unusedPositives += split.positives.length - positives.length;
    counts.correctNegatives += negatives.filter(({ em }) => em === 1).length;
  }
  const utilities = check.counts();
  refuseOtherFiles(candidates, files, utilities);
  return { utilities, ...counts };
}

/** A row of training data, in the format of Agentic-R's fork of tevatron: the positive is the first passage. */
function trainingRow(
  { item, round, history, global }: JudgedRound,
  passages: readonly JudgedCandidate[],
  { dataset, corpusIds, fullHistory }: ConstructSettings,
): object {
  const passageId = ({ row }: JudgedCandidate): string => {
    if (corpusIds === undefined) return String(row);
    const known = corpusIds.get(row);
    if (known === undefined) throw itemError(item.place, `passage ${row} is not in the file of --passages`);
    return known.corpusId;
  };
  return {
    dataset,
    query_id: item.id,
    // With local utilities alone, the original writes an empty question, so that training would embed " [SEP] query".
    question: global?.question ?? item.question,
    round_index: round.round_index,
    history_queries: fullHistory ? history : (global?.history ?? history),
    query_text: round.current_query,
    passage_ids: passages.map(passageId),
    // Its trainer reads both of every row; the original, too, writes 0 for a utility that was not judged.
    scores: passages.map(({ em = 0, local = 0 }) => ({ em, local_utility: local })),
  };
}

/** The positives of all rounds; several trajectories may have the same question. */
async function siblingPositives(
  candidates: string,
  files: UtilityFiles,
  settings: ConstructSettings,
  signal: AbortSignal | undefined,
): Promise<SiblingPositives> {
  const siblings = new SiblingPositives(settings.duplicatesBy);
  for await (const { item, candidates: judged } of judgedRounds(candidates, files, signal)) {
    const split = splitCandidates(judged, settings);
    if (typeof split !== 'string') siblings.add(item.question, split.positives);
  }
  return siblings;
}

/** Utilities of another agent or data set would silently give no rows. */
function refuseOtherFiles(candidates: string, files: UtilityFiles, utilities: UtilityCounts): void {
  for (const name of ['local', 'global'] as const) {
    const { rounds = 0, unknown = 0 } = utilities[name] ?? {};
    if (rounds === 0 || unknown < rounds) continue;
    throw usageError(
      `None of the ${rounds} rounds of ${files[name]!.path} is in ${candidates}: "id" and "round_index" must occur in the candidates. Is it the file of another data set or agent?`,
    );
  }
}

/**
 * Splits the candidates of a round by the rule of Agentic-R's step 4. They are sorted by `em`, then by local utility, both descending;
 * ties keep the order of retrieval. If the first is correct and its local utility reaches the threshold, it and all that equal it in
 * both numbers are positives. All others are negatives, also those that are correct with a lower local utility.
 *
 * @internal Exported for tests.
 */
export function splitCandidates(candidates: readonly JudgedCandidate[], { threshold }: RuleSettings) {
  const sorted = [...candidates].sort((a, b) => (b.em ?? 0) - (a.em ?? 0) || (b.local ?? 0) - (a.local ?? 0));
  const [best] = sorted;
  if (best === undefined || best.em === 0) return 'not-correct' as const;
  if (best.local !== undefined && best.local < threshold) return 'below-threshold' as const;
  const equalsBest = ({ em, local }: JudgedCandidate): boolean => em === best.em && local === best.local;
  return { positives: sorted.filter(equalsBest), negatives: sorted.filter((candidate) => !equalsBest(candidate)) };
}

/**
 * Draws `count` of the items without repetition, in their order. The draw depends on the seed and the key alone, so a row is the same
 * wherever it stands in a file.
 *
 * @internal Exported for tests.
 */
export function seededSample<T>(
  items: readonly T[],
  count: number,
  { seed, key }: { seed: number; key: string },
): readonly T[] {
  const random = randomNumbers(`${seed}\0${key}`);
  const places = items.map((_, place) => place);
  // The first steps of Fisher and Yates' shuffle.
  for (let i = 0; i < count; i++) {
    const j = i + Math.floor(random() * (places.length - i));
    [places[i], places[j]] = [places[j]!, places[i]!];
  }
  const drawn = places.slice(0, count).sort((a, b) => a - b);
  return drawn.map((place) => items[place]!);
}

/** Numbers in [0, 1) with 53 bits, from SHA-256 of the key and a counter. */
function randomNumbers(key: string): () => number {
  let block = 0;
  let bytes = Buffer.alloc(0);
  return () => {
    if (bytes.length < 8) {
      bytes = createHash('sha256').update(`${key}\0${block}`).digest();
      block += 1;
    }
    const value = bytes.readBigUInt64LE(0) >> 11n;
    bytes = bytes.subarray(8);
    return Number(value) / 2 ** 53;
  };
}
