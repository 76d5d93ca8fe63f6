import { createHash } from 'node:crypto';
import { DEFAULT_QUERY_TEMPLATE, type ModelIdentity } from '../../encoder/identity/model-identity.ts';
import { isSameModel } from '../../encoder/identity/same-model.ts';
import type { Retriever } from '../retriever.ts';
import type { RetrieverInfo, ViewInfo } from '../retriever-info.ts';

/** An index of a group. */
export interface GroupMember {
  readonly name: string;
  readonly retriever: Retriever;
  /** Its row 0 in the group, which numbers the rows of its indexes one after the other. */
  readonly firstRow: number;
}

export function membersOf(retrievers: readonly Retriever[]): readonly GroupMember[] {
  let firstRow = 0;
  return retrievers.map((retriever) => {
    const member = { name: retriever.info.index, retriever, firstRow };
    firstRow += retriever.info.rows;
    return member;
  });
}

/**
 * Facts about a group. It has the modes, columns and views that all its indexes have. Where the indexes differ, `model`, `metric` and
 * `reranker` are null and `dimension` is 0; `bm25` comes from the first index.
 */
export function groupInfo(index: string, members: readonly GroupMember[]): RetrieverInfo {
  const infos = members.map(({ retriever }) => retriever.info);
  const first = infos[0]!;
  const generations = infos.map(({ index: name, generation }) => `${name} ${generation}\n`).join('');
  const oneEncoder = infos.every((info) => embedAlike(info, first));
  const sum = (value: (info: RetrieverInfo) => number): number => infos.reduce((total, info) => total + value(info), 0);
  return {
    index,
    rows: sum(({ rows }) => rows),
    deletedRows: sum(({ deletedRows }) => deletedRows),
    modes: first.modes.filter((mode) => infos.every(({ modes }) => modes.includes(mode))),
    bm25: infos.every(({ bm25 }) => bm25 !== null) ? first.bm25 : null,
    columns: first.columns.filter(({ name, type }) =>
      infos.every(({ columns }) => columns.some((column) => column.name === name && column.type === type)),
    ),
    views: commonViews(infos),
    dimension: oneEncoder ? first.dimension : 0,
    metric: oneEncoder && infos.every(({ metric }) => metric === first.metric) ? first.metric : null,
    generation: createHash('sha256').update(generations).digest('hex').slice(0, 32),
    model: oneEncoder ? first.model : null,
    reranker: infos.every(({ reranker }) => reranker?.name === first.reranker?.name) ? first.reranker : null,
    memory: {
      residentBytes: sum(({ memory }) => memory.residentBytes),
      touchedBytes: sum(({ memory }) => memory.touchedBytes),
      mappedBytes: sum(({ memory }) => memory.mappedBytes),
      lexicalBytes: sum(({ memory }) => memory.lexicalBytes),
    },
    members: infos.map(({ index: name, generation, views }) => ({ index: name, generation, views })),
  };
}

function commonViews([first, ...others]: readonly RetrieverInfo[]): readonly ViewInfo[] {
  return first!.views.flatMap(({ name, passages }) => {
    const same = others.map(({ views }) => views.find((view) => view.name === name));
    if (same.includes(undefined)) return [];
    return [{ name, passages: same.reduce((sum, view) => sum + view!.passages, passages) }];
  });
}

/** Comparisons of probes, which take a millisecond; a model's identity does not change. */
const COMPARED = new WeakMap<ModelIdentity, WeakMap<ModelIdentity, boolean>>();

/** Whether two indexes embed a query alike. False for one without vectors. Endpoints are compared by their probes. */
export function embedAlike({ model: a }: RetrieverInfo, { model: b }: RetrieverInfo): boolean {
  if (a === null || b === null) return false;
  if (a.endpoint === undefined || b.endpoint === undefined) return encoderKey(a) === encoderKey(b);
  const ofA = COMPARED.get(a) ?? new WeakMap<ModelIdentity, boolean>();
  COMPARED.set(a, ofA);
  const isSame = ofA.get(b) ?? isSameModel(a, b);
  ofA.set(b, isSame);
  return isSame;
}

function encoderKey(model: ModelIdentity): string {
  const { sha256, architecture, dimension, pooling, normalize, precision, prefixes, maxTokens } = model;
  const { queryTemplate = DEFAULT_QUERY_TEMPLATE } = model;
  return JSON.stringify([
    [sha256, architecture, dimension, pooling, normalize, precision],
    [prefixes.query, maxTokens.query, queryTemplate],
  ]);
}
