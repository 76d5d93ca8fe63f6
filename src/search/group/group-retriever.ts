import { cancelled } from '../../base/abort.ts';
import { asTrawlError, TrawlError } from '../../base/errors.ts';
import { RowBitmap } from '../../engine/row-bitmap.ts';
import type { QueryOutcome } from '../calls/query-outcome.ts';
import { type RetrieveCall, type RetrieveResult, withVector } from '../calls/retrieve-call.ts';
import type { TreeCall, TreeResult } from '../calls/tree-call.ts';
import type {
  CutCall,
  EmbedCall,
  ExplainCall,
  ExplainedTerm,
  FindCall,
  NearestCall,
  RerankCall,
  Retriever,
  RowScore,
  ScoreCall,
  ScoreOutcome,
  SelectCall,
} from '../retriever.ts';
import type { RetrieverInfo } from '../retriever-info.ts';
import type { SearchMode } from '../search-mode.ts';
import { longestTimings, NO_TIMINGS, type StageTimings } from '../timings.ts';
import { embedAlike, type GroupMember, groupInfo, membersOf } from './group-info.ts';
import { errorOfIndex, mergeOutcomes, mergeTrees, movedValues, treeOfMember } from './group-merge.ts';

/**
 * Searches several indexes as one, which numbers the rows of the indexes one after the other. Each index is searched for k hits, and the
 * lists are merged (`mergeOutcomes`); a hit names its index in `source`. Indexes with the same encoder embed a query once.
 *
 * If an index fails, the call rejects, unless it has `allowPartial`: then the answers of the other indexes name it in
 * `failedIndexes`. The retrievers belong to the caller, who closes them.
 */
export class GroupRetriever implements Retriever {
  readonly info: RetrieverInfo;
  readonly #members: readonly GroupMember[];

  /** @param retrievers at least one, in the order that decides among equal scores. */
  constructor(name: string, retrievers: readonly Retriever[]) {
    this.#members = membersOf(retrievers);
    this.info = groupInfo(name, this.#members);
  }

  async retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    const { queries, k, allowPartial = false, rerank, signal } = call;
    const mode = call.mode ?? this.info.modes[0];
    if (mode === undefined) throw this.#noCommonMode();
    const abortOthers = new AbortController();
    const signals = [abortOthers.signal, signal].filter((each) => each !== undefined);
    const each = { ...call, mode, signal: AbortSignal.any(signals) };
    const results = new Map<GroupMember, RetrieveResult | TrawlError>();
    const search = async (member: GroupMember, own: RetrieveCall['queries']): Promise<void> => {
      try {
        results.set(member, await member.retriever.retrieve({ ...each, queries: own }));
      } catch (thrown) {
        const error = asTrawlError(thrown);
        if (signal?.aborted === true) throw error.code === 'CANCELLED' ? error : cancelled();
        results.set(member, error);
        if (allowPartial) return;
        abortOthers.abort();
        throw errorOfIndex({ index: member.name, error });
      }
    };
    // The first index of each encoder gets the queries, the others the vectors that it returns.
    const searches = this.#byEncoder(mode).map(async ([first, ...others]) => {
      await search(first!, queries);
      if (others.length === 0) return;
      const found = results.get(first!)!;
      const embedded =
        found instanceof TrawlError
          ? queries
          : queries.map((query, q) => withVector(query, found.outcomes[q]!, call.truncate));
      await Promise.all(others.map((member) => search(member, embedded)));
    });
    await Promise.all(searches);
    const inOrder = this.#members.map((member) => results.get(member)!);
    const [failed] = inOrder;
    if (failed instanceof TrawlError && inOrder.every((result) => result instanceof TrawlError)) {
      throw errorOfIndex({ index: this.#members[0]!.name, error: failed });
    }
    // Scores can be compared across the indexes if they come from one reranker, or from vectors of one encoder and metric. BM25's cannot,
    // because a term's weight depends on the other passages of its index.
    const { reranker, metric } = this.info;
    const comparable = rerank === undefined ? mode === 'dense' && metric !== null : reranker !== null;
    const outcomes = queries.map((_, q): QueryOutcome => {
      const ofQuery = inOrder.map(
        (result): QueryOutcome => (result instanceof TrawlError ? { ok: false, error: result } : result.outcomes[q]!),
      );
      const merged = mergeOutcomes(this.#members, ofQuery, { k, comparable, allowPartial });
      // The vector of one index must not be searched in one with another encoder.
      return merged.ok && mode !== 'bm25' && this.info.model === null ? { ...merged, vector: null } : merged;
    });
    return { outcomes, timings: slowest(inOrder) };
  }

  /** The indexes, those with the same encoder together; BM25 needs no encoder, so each is alone. */
  #byEncoder(mode: SearchMode): readonly (readonly GroupMember[])[] {
    if (mode === 'bm25') return this.#members.map((member) => [member]);
    const groups: GroupMember[][] = [];
    for (const member of this.#members) {
      const group = groups.find(([first]) => embedAlike(first!.retriever.info, member.retriever.info));
      if (group === undefined) groups.push([member]);
      else group.push(member);
    }
    return groups;
  }

  async explain(call: ExplainCall) {
    const answers = await this.#eachWithRows(call.queries, ({ retriever }, queries) =>
      retriever.explain({ ...call, queries }),
    );
    const explained = call.queries.map(({ rows }) => new Array<readonly ExplainedTerm[]>(rows.length));
    for (const { places, result } of answers) {
      for (const [q, terms] of result.explained.entries()) {
        for (const [i, at] of places[q]!.entries()) explained[q]![at] = terms[i]!;
      }
    }
    return { explained, timings: slowest(answers.map(({ result }) => result)) };
  }

  async searchTree(call: TreeCall): Promise<TreeResult> {
    // The sets of rows in the query of an index depend on the group, so its result is not shared with other calls.
    const { query, from, size, order, after, key: _key, ...rest } = call;
    const results = await this.#each((member) =>
      member.retriever.searchTree({
        ...rest,
        query: treeOfMember(query, member),
        from: 0,
        size: from + size,
        order,
        after: after && order && movedValues(after, order, -member.firstRow),
      }),
    );
    return { ...mergeTrees(this.#members, results, call), timings: slowest(results) };
  }

  async select(call: SelectCall): Promise<RowBitmap> {
    const { query } = call;
    const sets = await this.#each((member) =>
      member.retriever.select(query === undefined ? call : { ...call, query: treeOfMember(query, member) }),
    );
    return RowBitmap.concat(sets);
  }

  /** Rejects with NOT_SUPPORTED if the scores of the indexes cannot be compared. */
  async nearest(call: NearestCall) {
    if (this.info.metric === null) {
      throw new TrawlError(
        'NOT_SUPPORTED',
        `The vectors of the indexes of ${this.info.index} are of different models or metrics. Name one of them: ${this.#names}.`,
      );
    }
    const { rows, k } = call;
    const results = await this.#each(({ retriever, firstRow }) => {
      const own = rows?.slice(firstRow, retriever.info.rows);
      return retriever.nearest({ ...call, rows: own });
    });
    const nearest = results
      .flatMap(({ nearest: found }, m) =>
        found.map(({ row, score }) => ({ row: this.#members[m]!.firstRow + row, score })),
      )
      .sort((a, b) => b.score - a.score || a.row - b.row);
    return { nearest: nearest.slice(0, k), timings: slowest(results) };
  }

  /** Scores and ranks in the index that has the passage. Not in every mode can scores of different indexes be compared. */
  async score(call: ScoreCall) {
    const answers = await this.#eachWithRows(call.queries, ({ retriever }, queries) =>
      retriever.score({ ...call, queries }),
    );
    const outcomes = call.queries.map(({ rows }, q): ScoreOutcome => {
      const scores = new Array<RowScore>(rows.length);
      for (const { member, places, result } of answers) {
        const outcome = result.outcomes[q]!;
        if (places[q]!.length === 0) continue;
        if (!outcome.ok) return { ok: false, error: errorOfIndex({ index: member.name, error: outcome.error }) };
        for (const [i, at] of places[q]!.entries()) scores[at] = outcome.scores[i]!;
      }
      return { ok: true, scores };
    });
    return { outcomes, timings: slowest(answers.map(({ result }) => result)) };
  }

  /** Calls each index that has rows of the queries. `places`: where its rows are in the lists of the group's queries. */
  async #eachWithRows<Query extends { readonly rows: readonly number[] }, Result>(
    queries: readonly Query[],
    call: (member: GroupMember, queries: readonly Query[]) => Promise<Result>,
  ) {
    const answers = await this.#each(async (member) => {
      const places = queries.map(({ rows }) => [...rows.keys()].filter((at) => holds(member, rows[at]!)));
      if (places.every(({ length }) => length === 0)) return [];
      const rowsIn = queries.map(({ rows }, q) => places[q]!.map((at) => rows[at]! - member.firstRow));
      const result = await call(
        member,
        queries.map((query, q) => ({ ...query, rows: rowsIn[q]! })),
      );
      return [{ member, places, result }];
    });
    return answers.flat();
  }

  /** Calls every index; the first error rejects, with the name of its index. */
  #each<T>(call: (member: GroupMember) => Promise<T>): Promise<T[]> {
    return Promise.all(
      this.#members.map(async (member) => {
        try {
          return await call(member);
        } catch (error) {
          throw errorOfIndex({ index: member.name, error: asTrawlError(error) });
        }
      }),
    );
  }

  async embed(call: EmbedCall) {
    if (this.info.model !== null) return this.#members[0]!.retriever.embed(call);
    throw new TrawlError(
      'NOT_SUPPORTED',
      `The indexes of ${this.info.index} have no common encoder. Name one of them: ${this.#names}.`,
    );
  }

  rerank(call: RerankCall) {
    return this.#members[0]!.retriever.rerank(call);
  }

  async find(call: FindCall) {
    const results = await this.#each((member) =>
      member.retriever.find({ ...call, keys: call.keys.map((key) => keyIn(member, key, call)) }),
    );
    const found = call.keys.map((_, k) => {
      const passages = results.flatMap(({ found: lists }, i) => {
        const { name, firstRow } = this.#members[i]!;
        return lists[k]!.map(({ row, ...passage }) => ({
          ...passage,
          row: firstRow + row,
          source: { index: name, row },
        }));
      });
      return passages.slice(0, call.limit);
    });
    return { found, timings: slowest(results) };
  }

  /** By the tokenizer of the first index. */
  cut(call: CutCall) {
    return this.#members[0]!.retriever.cut(call);
  }

  get #names(): string {
    return this.#members.map(({ name }) => name).join(', ');
  }

  #noCommonMode(): TrawlError {
    const each = this.#members.map(({ name, retriever }) => `${name} has ${retriever.info.modes.join(' and ')}`);
    return new TrawlError(
      'NOT_SUPPORTED',
      `The indexes of ${this.info.index} have no common mode: ${each.join(', ')}. Search them one by one.`,
    );
  }
}

function holds({ firstRow, retriever }: GroupMember, row: number): boolean {
  return row >= firstRow && row < firstRow + retriever.info.rows;
}

/** The key of a look-up in an index; a row of another index becomes one that the index does not have. */
function keyIn(member: GroupMember, key: string, { by }: FindCall): string {
  if (by !== 'row') return key;
  const row = /^\d{1,15}$/.test(key) ? Number(key) : -1;
  return holds(member, row) ? String(row - member.firstRow) : 'no row';
}

/** The indexes are searched at the same time, so each stage takes as long as in the slowest of them. */
function slowest(results: readonly ({ readonly timings: StageTimings } | TrawlError)[]): StageTimings {
  return results.reduce(
    (longest, result) => (result instanceof TrawlError ? longest : longestTimings(longest, result.timings)),
    NO_TIMINGS,
  );
}
