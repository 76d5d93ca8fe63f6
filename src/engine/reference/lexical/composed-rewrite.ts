import {
  type BoolNode,
  type Clauses,
  clauseCount,
  EqualityClasses,
  isPureDisjunction,
  MATCH_NONE,
  makeBool,
  makeBoost,
  type Node,
} from './composed-tree.ts';

/**
 * Rewrites a query as Lucene 9.12 does before scoring, because the shape of the tree decides where sums are rounded to float32.
 * native/src/lexical/query_rewrite.cpp has the same rules in the same order.
 *
 * @throws TrawlError INVALID_REQUEST if a product or a sum of boosts overflows float32.
 */
export function rewriteQuery(root: Node): Node {
  return new Rewriter().toFixedPoint(root);
}

class Rewriter {
  readonly #equality = new EqualityClasses();
  // Each node is rewritten once.
  readonly #steps = new Map<Node, Node>();
  readonly #withoutScores = new Map<Node, Node>();
  readonly #wrapped = new Map<Node, Node>();

  toFixedPoint(root: Node): Node {
    let node = root;
    for (let next = this.#step(node); next !== node; next = this.#step(node)) node = next;
    return node;
  }

  #step(node: Node): Node {
    const next = this.#steps.get(node) ?? this.#computeStep(node);
    this.#steps.set(node, next);
    return next;
  }

  #computeStep(node: Node): Node {
    switch (node.type) {
      case 'bool':
        return this.#stepBool(node);
      case 'dis-max':
        return this.#stepDisMax(node);
      case 'constant-score':
        return this.#stepConstantScore(node);
      case 'boost':
        return this.#stepBoost(node);
      default:
        return node;
    }
  }

  #stepBoost(node: Extract<Node, { type: 'boost' }>): Node {
    const { child, boost } = node;
    const next = this.#step(child);
    if (boost === 1) return next;
    if (next.type === 'boost') return makeBoost(next.child, Math.fround(boost * next.boost));
    if (next.type === 'match-none') return next;
    if (boost === 0 && next.type !== 'constant-score') return makeBoost({ type: 'constant-score', child: next }, 0);
    return next === child ? node : makeBoost(next, boost);
  }

  #stepConstantScore(node: Extract<Node, { type: 'constant-score' }>): Node {
    const { child } = node;
    let next = this.#step(child);
    if (next.type === 'boost' || next.type === 'constant-score') next = next.child;
    else if (next.type === 'bool') next = this.#ignoringScores(next);
    if (next.type === 'match-none') return next;
    return next === child ? node : { type: 'constant-score', child: next };
  }

  #stepDisMax(node: Extract<Node, { type: 'dis-max' }>): Node {
    const { queries, tieBreaker } = node;
    if (queries.length === 0) return MATCH_NONE;
    if (queries.length === 1) return queries[0]!;
    if (tieBreaker === 1) return makeBool({ should: queries });
    const next = queries.map((query) => this.toFixedPoint(query));
    return next.every((query, i) => query === queries[i]) ? node : { ...node, queries: next };
  }

  /** A bool of which only the matching rows are needed: must becomes filter, and needless should clauses are dropped. */
  #ignoringScores(node: BoolNode): Node {
    const known = this.#withoutScores.get(node);
    if (known !== undefined) return known;
    const { must, should, filter, mustNot, minimum } = node;
    let changed = must.length > 0;
    const move = (queries: readonly Node[]): Node[] =>
      queries.map((query) => {
        let inner = query.type === 'boost' ? query.child : query;
        if (inner.type === 'constant-score') inner = inner.child;
        if (inner.type === 'bool') inner = this.#ignoringScores(inner);
        changed ||= inner !== query;
        return inner;
      });
    const filters = [...move(must), ...move(filter)];
    const mustNots = move(mustNot);
    const keepsShoulds = minimum > 0 || must.length + filter.length === 0;
    if (!keepsShoulds && should.length > 0) changed = true;
    const shoulds = keepsShoulds ? move(should) : [];
    const result = changed ? makeBool({ should: shoulds, filter: filters, mustNot: mustNots, minimum }) : node;
    this.#withoutScores.set(node, result);
    return result;
  }

  /** Applies the first rule that changes the bool. The order of the rules is Lucene's. */
  #stepBool(node: BoolNode): Node {
    if (clauseCount(node) === 0) return MATCH_NONE;
    return (
      this.#unwrapSingleClause(node) ??
      this.#stepClauses(node) ??
      this.#dropEqualFilters(node) ??
      this.#refuseContradiction(node) ??
      this.#dropNeedlessFilters(node) ??
      this.#joinShouldAndFilter(node) ??
      (node.minimum > 1 ? undefined : this.#mergeEqual(node, 'should')) ??
      this.#mergeEqual(node, 'must') ??
      mustOfAllRows(node) ??
      spliceDisjunctions(node) ??
      applyMinimum(node) ??
      node
    );
  }

  #unwrapSingleClause(clauses: Clauses): Node | undefined {
    if (clauseCount(clauses) !== 1) return undefined;
    const { must, should, filter, minimum } = clauses;
    if (minimum <= 1 && should.length === 1) return should[0];
    if (minimum !== 0) return undefined;
    if (must.length === 1) return must[0];
    if (filter.length === 1) return makeBoost({ type: 'constant-score', child: filter[0]! }, 0);
    return MATCH_NONE;
  }

  #stepClauses({ must, should, filter, mustNot, minimum }: BoolNode): Node | undefined {
    let changed = false;
    let none = false;
    const rewrite = (queries: readonly Node[], { scores, required }: { scores: boolean; required: boolean }): Node[] =>
      queries.flatMap((query) => {
        const next = scores ? this.toFixedPoint(query) : this.#filterToFixedPoint(query);
        changed ||= next !== query;
        if (next.type !== 'match-none') return [next];
        changed = true;
        none ||= required;
        return [];
      });
    const next = makeBool({
      must: rewrite(must, { scores: true, required: true }),
      should: rewrite(should, { scores: true, required: false }),
      filter: rewrite(filter, { scores: false, required: true }),
      mustNot: rewrite(mustNot, { scores: false, required: false }),
      minimum,
    });
    return none ? MATCH_NONE : changed ? next : undefined;
  }

  #filterToFixedPoint(root: Node): Node {
    for (let node = root; ; ) {
      const wrapped = this.#wrapped.get(node) ?? { type: 'constant-score', child: node };
      this.#wrapped.set(node, wrapped);
      const stepped = this.#step(wrapped);
      const next = stepped.type === 'constant-score' ? stepped.child : stepped;
      if (next === node) return node;
      node = next;
    }
  }

  #classesOf(queries: readonly Node[]): Set<number> {
    return new Set(queries.map((query) => this.#equality.of(query)));
  }

  #distinct(queries: readonly Node[]): Node[] {
    const seen = new Set<number>();
    return queries.filter((query) => {
      const { size } = seen;
      return seen.add(this.#equality.of(query)).size > size;
    });
  }

  #dropEqualFilters(node: BoolNode): Node | undefined {
    const [filter, mustNot] = [this.#distinct(node.filter), this.#distinct(node.mustNot)];
    if (filter.length === node.filter.length && mustNot.length === node.mustNot.length) return undefined;
    return makeBool({ ...node, filter, mustNot });
  }

  #refuseContradiction({ must, filter, mustNot }: BoolNode): Node | undefined {
    const required = this.#classesOf([...must, ...filter]);
    const contradicts = (query: Node): boolean => query.type === 'match-all' || required.has(this.#equality.of(query));
    return mustNot.some(contradicts) ? MATCH_NONE : undefined;
  }

  /** Drops filters that match all rows or that are also must clauses. */
  #dropNeedlessFilters(node: BoolNode): Node | undefined {
    const must = this.#classesOf(node.must);
    const others = node.filter.length > 1 || node.must.length > 0;
    const filter = node.filter.filter(
      (query) => !(others && query.type === 'match-all') && !must.has(this.#equality.of(query)),
    );
    return filter.length === node.filter.length ? undefined : makeBool({ ...node, filter });
  }

  /** A should clause that is also a filter becomes a must clause. */
  #joinShouldAndFilter(node: BoolNode): Node | undefined {
    const [shoulds, filters] = [this.#classesOf(node.should), this.#classesOf(node.filter)];
    const filter = node.filter.filter((query) => !shoulds.has(this.#equality.of(query)));
    if (filter.length === node.filter.length) return undefined;
    const joins = (query: Node): boolean => filters.has(this.#equality.of(query));
    const joined = node.should.filter(joins);
    return makeBool({
      must: [...node.must, ...joined],
      should: node.should.filter((query) => !joins(query)),
      filter,
      mustNot: node.mustNot,
      minimum: Math.max(0, node.minimum - joined.length),
    });
  }

  /** Merges clauses that differ only in their boosts. The boosts are summed in float64. */
  #mergeEqual(node: BoolNode, clauses: 'must' | 'should'): Node | undefined {
    const merged = new Map<number, { query: Node; boost: number }>();
    for (let query of node[clauses]) {
      let boost = 1;
      for (; query.type === 'boost'; query = query.child) boost *= query.boost;
      const place = this.#equality.of(query);
      const found = merged.get(place);
      if (found === undefined) merged.set(place, { query, boost });
      else found.boost += boost;
    }
    if (merged.size === node[clauses].length) return undefined;
    const queries = Array.from(merged.values(), ({ query, boost }) =>
      Math.fround(boost) === 1 ? query : makeBoost(query, boost),
    );
    return makeBool({ ...node, [clauses]: queries });
  }
}

/** In a bool of filters and one must clause that matches all rows, the filters get the constant score of that clause. */
function mustOfAllRows({ must, should, filter, mustNot, minimum }: BoolNode): Node | undefined {
  const [only] = must;
  if (only === undefined || must.length > 1 || filter.length === 0) return undefined;
  const [query, boost] = only.type === 'boost' ? [only.child, only.boost] : [only, 1];
  if (query.type !== 'match-all') return undefined;
  const constant: Node = { type: 'constant-score', child: makeBool({ filter, mustNot }) };
  return makeBool({ must: [boost === 1 ? constant : makeBoost(constant, boost)], should, minimum });
}

function spliceDisjunctions(node: BoolNode): Node | undefined {
  if (node.minimum > 1 || !node.should.some(isPureDisjunction)) return undefined;
  return makeBool({
    ...node,
    should: node.should.flatMap((query) => (isPureDisjunction(query) ? query.should : [query])),
  });
}

function applyMinimum(node: BoolNode): Node | undefined {
  const { must, should, minimum } = node;
  if (should.length === 0 || should.length > minimum) return undefined;
  if (should.length < minimum) return MATCH_NONE;
  return makeBool({ ...node, must: [...must, ...should], should: [], minimum: 0 });
}
