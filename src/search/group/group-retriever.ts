import { cancelled } from '../../base/abort.ts';
import { asTrawlError, TrawlError } from '../../base/errors.ts';
import { RowBitmap } from '../../engine/row-bitmap.ts';
import type {
  ExplainCall,
  ExplainedTerm,
  ExplainResult,
  FindCall,
  FindResult,
  FoundPassage,
  NearestCall,
  NearestResult,
  RowScore,
  ScoreCall,
  ScoreOutcome,
  ScoreResult,
  SelectCall,
} from '../calls/lookup-calls.ts';
import type { CutCall, CutResult, EmbedCall, EmbedResult, RerankCall, RerankResult } from '../calls/model-calls.ts';
import type { QueryOutcome } from '../calls/query-outcome.ts';
import { type RetrieveCall, type RetrieveResult, withVector } from '../calls/retrieve-call.ts';
import type { TreeCall, TreeResult } from '../calls/tree-call.ts';
import type { Retriever } from '../retriever.ts';
import type { RetrieverInfo } from '../retriever-info.ts';
import { longestTimings, NO_TIMINGS, type StageTimings } from '../timings.ts';
import { embedAlike, type GroupMember, groupInfo, hasComparableScores, membersOf } from './group-info.ts';
import { errorOfIndex, mergeOutcomes } from './group-merge.ts';
import { mergeTrees, movedValues, treeOfMember } from './group-tree.ts';

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
    const mode = call.mode ?? this.info.modes[0];
    if (mode === undefined) throw this.#noCommonMode();
    const { allowPartial = false, rerank, signal } = call;
    const abortOthers = new AbortController();
    const signals = [abortOthers.signal, ...(signal === undefined ? [] : [signal])];
    const each = { ...call, mode, signal: AbortSignal.any(signals) };
    const results = await this.#searchEach(each, (member, error) => {
      if (signal?.aborted === true) throw error.code === 'CANCELLED' ? error : cancelled();
      if (allowPartial) return;
      abortOthers.abort();
      throw errorOfIndex({ index: member.name, error });
    });
    const [failed] = results.filter((result) => result instanceof TrawlError);
    if (failed !== undefined && results.every((result) => result instanceof TrawlError)) {
      throw errorOfIndex({ index: this.#members[results.indexOf(failed)]!.name, error: failed });
    }
    const byScore = hasComparableScores(this.info, { mode, reranks: rerank !== undefined });
    const outcomes = call.queries.map((_, q): QueryOutcome => {
      const ofQuery = results.map(
        (result): QueryOutcome => (result instanceof TrawlError ? { ok: false, error: result } : result.outcomes[q]!),
      );
      const merged = mergeOutcomes(this.#members, ofQuery, { k: call.k, byScore, allowPartial });
      // The vector of one index must not be searched in one with another encoder.
      return merged.ok && mode !== 'bm25' && this.info.model === null ? { ...merged, vector: null } : merged;
    });
    return { outcomes, timings: timingsOf(results) };
  }

  /**
   * The result or the error of each index. The first index of each encoder gets the queries, the others the vectors that it returns.
   * `onFailure` throws to fail the call.
   */
  async #searchEach(
    call: RetrieveCall,
    onFailure: (member: GroupMember, error: TrawlError) => void,
  ): Promise<readonly (RetrieveResult | TrawlError)[]> {
    const results = new Array<RetrieveResult | TrawlError>(this.#members.length);
    const search = async (place: number, queries: RetrieveCall['queries']): Promise<void> => {
      const member = this.#members[place]!;
      try {
        results[place] = await member.retriever.retrieve({ ...call, queries });
      } catch (error) {
        results[place] = asTrawlError(error);
        onFailure(member, results[place]);
      }
    };
    const searches = this.#byEncoder(call).map(async ([first, ...others]) => {
      await search(first!, call.queries);
      const found = results[first!]!;
      const queries =
        others.length === 0 || found instanceof TrawlError
          ? call.queries
          : call.queries.map((query, q) => withVector(query, found.outcomes[q]!, call.truncate));
      await Promise.all(others.map((place) => search(place, queries)));
    });
    await Promise.all(searches);
    return results;
  }

  /** The places of the indexes, those with the same encoder together; BM25 needs no encoder, so each is alone. */
  #byEncoder({ mode }: RetrieveCall): readonly (readonly number[])[] {
    const groups: number[][] = [];
    for (const [place, { retriever }] of this.#members.entries()) {
      const group =
        mode === 'bm25'
          ? undefined
          : groups.find(([first]) => embedAlike(this.#members[first!]!.retriever.info, retriever.info));
      if (group === undefined) groups.push([place]);
      else group.push(place);
    }
    return groups;
  }

  async explain(call: ExplainCall): Promise<ExplainResult> {
    const asked = this.#members.map((member) => rowsOfMember(call.queries, member));
    const results = await this.#each(async ({ retriever }, m) =>
      asked[m] === undefined ? undefined : retriever.explain({ ...call, queries: asked[m].queries }),
    );
    const explained = call.queries.map(({ rows }) => new Array<readonly ExplainedTerm[]>(rows.length));
    for (const [m, result] of results.entries()) {
      for (const [q, terms] of (result?.explained ?? []).entries()) {
        for (const [i, at] of asked[m]!.places[q]!.entries()) explained[q]![at] = terms[i]!;
      }
    }
    return { explained, timings: timingsOf(results.filter((result) => result !== undefined)) };
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
        ...(order === undefined || after === undefined ? {} : { after: movedValues(after, order, -member.firstRow) }),
      }),
    );
    return { ...mergeTrees(this.#members, results, call), timings: timingsOf(results) };
  }

  async select(call: SelectCall): Promise<RowBitmap> {
    const { query } = call;
    const sets = await this.#each((member) =>
      member.retriever.select(query === undefined ? call : { ...call, query: treeOfMember(query, member) }),
    );
    return RowBitmap.concat(sets);
  }

  /** Rejects with NOT_SUPPORTED if the scores of the indexes cannot be compared. */
  async nearest(call: NearestCall): Promise<NearestResult> {
    if (!hasComparableScores(this.info, { mode: 'dense', reranks: false })) {
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
    return { nearest: nearest.slice(0, k), timings: timingsOf(results) };
  }

  /** Scores and ranks in the index that has the passage. Not in every mode can scores of different indexes be compared. */
  async score(call: ScoreCall): Promise<ScoreResult> {
    const { queries } = call;
    const asked = this.#members.map((member) => rowsOfMember(queries, member));
    const results = await this.#each(async ({ retriever }, m) =>
      asked[m] === undefined ? undefined : retriever.score({ ...call, queries: asked[m].queries }),
    );
    const outcomes = queries.map(({ rows }, q): ScoreOutcome => {
      const scores = new Array<RowScore>(rows.length);
      for (const [m, result] of results.entries()) {
        if (result === undefined) continue;
        const own = asked[m]!.places[q]!;
        const outcome = result.outcomes[q]!;
        if (own.length === 0) continue;
        if (!outcome.ok) {
          return { ok: false, error: errorOfIndex({ index: this.#members[m]!.name, error: outcome.error }) };
        }
        for (const [i, at] of own.entries()) scores[at] = outcome.scores[i]!;
      }
      return { ok: true, scores };
    });
    return { outcomes, timings: timingsOf(results.filter((result) => result !== undefined)) };
  }

  /** Calls every index; the first error rejects, with the name of its index. */
  #each<T>(call: (member: GroupMember, place: number) => Promise<T>): Promise<T[]> {
    return Promise.all(
      this.#members.map(async (member, place) => {
        try {
          return await call(member, place);
        } catch (error) {
          throw errorOfIndex({ index: member.name, error: asTrawlError(error) });
        }
      }),
    );
  }

  async embed(call: EmbedCall): Promise<EmbedResult> {
    if (this.info.model !== null) return this.#members[0]!.retriever.embed(call);
    throw new TrawlError(
      'NOT_SUPPORTED',
      `The indexes of ${this.info.index} have no common encoder. Name one of them: ${this.#names}.`,
    );
  }

  async rerank(call: RerankCall): Promise<RerankResult> {
    return this.#members[0]!.retriever.rerank(call);
  }

  async find(call: FindCall): Promise<FindResult> {
    const results = await this.#each((member) =>
      member.retriever.find({ ...call, keys: call.keys.map((key) => keyIn(member, key, call)) }),
    );
    const found = call.keys.map((_, k) =>
      results
        .flatMap(({ found: lists }, i) => lists[k]!.map((passage) => ofGroup(this.#members[i]!, passage)))
        .slice(0, call.limit),
    );
    return { found, timings: timingsOf(results) };
  }

  /** By the tokenizer of the first index. */
  async cut(call: CutCall): Promise<CutResult> {
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

/**
 * Queries with the rows that one index has, numbered as there, and the places of those rows in the lists of the group's queries.
 * Undefined if the index has none of the rows.
 */
function rowsOfMember<Query extends { readonly rows: readonly number[] }>(
  queries: readonly Query[],
  member: GroupMember,
): { readonly queries: readonly Query[]; readonly places: readonly (readonly number[])[] } | undefined {
  const places = queries.map(({ rows }) => [...rows.keys()].filter((at) => holds(member, rows[at]!)));
  if (places.every(({ length }) => length === 0)) return undefined;
  const asked = queries.map((query, q) => ({
    ...query,
    rows: places[q]!.map((at) => query.rows[at]! - member.firstRow),
  }));
  return { queries: asked, places };
}

/** The key of a look-up in an index; a row of another index becomes one that the index does not have. */
function keyIn(member: GroupMember, key: string, { by }: FindCall): string {
  if (by !== 'row') return key;
  const row = /^\d{1,15}$/.test(key) ? Number(key) : -1;
  return holds(member, row) ? String(row - member.firstRow) : 'no row';
}

function ofGroup({ name, firstRow }: GroupMember, passage: FoundPassage): FoundPassage {
  return { ...passage, row: firstRow + passage.row, source: { index: name, row: passage.row } };
}

/** The indexes are searched at the same time, so each stage takes as long as in the slowest of them. */
function timingsOf(results: readonly ({ readonly timings: StageTimings } | TrawlError)[]): StageTimings {
  return results.reduce(
    (longest, result) => (result instanceof TrawlError ? longest : longestTimings(longest, result.timings)),
    NO_TIMINGS,
  );
}
