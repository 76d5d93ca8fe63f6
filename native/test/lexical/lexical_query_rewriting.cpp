#include "lexical_query_rewriting.hpp"

#include <algorithm>

namespace lexical_test {
namespace {

Tree wrap(const std::string& kind, Tree inner, float number = 1) {
  Tree tree;
  tree.kind = kind;
  tree.number = number;
  tree.of.push_back(std::move(inner));
  return tree;
}

Tree nothing() {
  Tree tree;
  tree.kind = "none";
  return tree;
}

bool holds(const std::vector<Tree>& list, const Tree& sought) {
  return std::any_of(list.begin(), list.end(), [&](const Tree& one) { return one.key() == sought.key(); });
}

// Rewrites one step at a time, as Lucene's classes do: the first change ends the step.
Tree step(const Tree& tree);

Tree without_scores(const Tree& tree) {
  Tree out = tree;
  out.must.clear();
  out.filter.clear();
  const auto strip = [](Tree one) {
    if (one.kind == "^") one = Tree(one.of[0]);
    if (one.kind == "constant") one = Tree(one.of[0]);
    return one.kind == "bool" ? without_scores(one) : one;
  };
  for (const Tree& one : tree.must) out.filter.push_back(strip(one));
  for (const Tree& one : tree.filter) out.filter.push_back(strip(one));
  for (Tree& one : out.must_not) one = strip(one);
  for (Tree& one : out.should) one = strip(one);
  if (tree.minimum == 0 && tree.must.size() + tree.filter.size() > 0) out.should.clear();
  return out;
}

std::vector<Tree> merged(const std::vector<Tree>& list) {
  std::vector<std::pair<Tree, double>> sums;
  for (Tree one : list) {
    double boost = 1;
    while (one.kind == "^") {
      boost *= one.number;
      one = Tree(one.of[0]);
    }
    const auto same = std::find_if(sums.begin(), sums.end(), [&](const auto& sum) { return sum.first.key() == one.key(); });
    if (same == sums.end()) {
      sums.push_back({one, boost});
    } else {
      same->second += boost;
    }
  }
  if (sums.size() == list.size()) return list;
  std::vector<Tree> out;
  for (const auto& [one, boost] : sums) {
    const auto number = static_cast<float>(boost);
    out.push_back(number == 1 ? one : wrap("^", one, number));
  }
  return out;
}

Tree step_bool(const Tree& tree) {
  if (tree.clauses() == 0) return nothing();
  if (tree.clauses() == 1) {
    if (tree.minimum <= 1 && !tree.should.empty()) return tree.should[0];
    if (tree.minimum == 0 && !tree.must.empty()) return tree.must[0];
    if (tree.minimum == 0 && !tree.filter.empty()) return wrap("^", wrap("constant", tree.filter[0]), 0);
    if (tree.minimum == 0) return nothing();
  }
  Tree out = tree;
  const auto drop_none = [](std::vector<Tree>& list) {
    list.erase(std::remove_if(list.begin(), list.end(), [](const Tree& one) { return one.kind == "none"; }), list.end());
  };
  for (Tree& one : out.must) one = step(one);
  for (Tree& one : out.should) one = step(one);
  for (auto* list : {&out.filter, &out.must_not}) {
    for (Tree& one : *list) {
      one = step(wrap("constant", one));
      if (one.kind == "constant") one = Tree(one.of[0]);
    }
  }
  for (const auto* list : {&out.must, &out.filter}) {
    for (const Tree& one : *list) {
      if (one.kind == "none") return nothing();
    }
  }
  drop_none(out.should);
  drop_none(out.must_not);
  if (out.text() != tree.text()) return out;

  for (auto* list : {&out.filter, &out.must_not}) {
    std::vector<Tree> kept;
    for (const Tree& one : *list) {
      if (!holds(kept, one)) kept.push_back(one);
    }
    *list = kept;
  }
  if (out.text() != tree.text()) return out;

  for (const Tree& one : tree.must_not) {
    if (one.kind == "all" || holds(tree.must, one) || holds(tree.filter, one)) return nothing();
  }

  const bool beside_others = tree.filter.size() > 1 || !tree.must.empty();
  out.filter.clear();
  for (const Tree& one : tree.filter) {
    if (!(beside_others && one.kind == "all") && !holds(tree.must, one)) out.filter.push_back(one);
  }
  if (out.text() != tree.text()) return out;

  out = tree;
  out.should.clear();
  out.filter.clear();
  for (const Tree& one : tree.filter) {
    if (!holds(tree.should, one)) out.filter.push_back(one);
  }
  for (const Tree& one : tree.should) {
    if (holds(tree.filter, one)) {
      out.must.push_back(one);
      if (out.minimum > 0) out.minimum--;
    } else {
      out.should.push_back(one);
    }
  }
  if (out.text() != tree.text()) return out;

  if (tree.minimum <= 1) out.should = merged(tree.should);
  if (out.text() != tree.text()) return out;
  out.must = merged(tree.must);
  if (out.text() != tree.text()) return out;

  if (tree.must.size() == 1 && !tree.filter.empty()) {
    const bool boosted = tree.must[0].kind == "^";
    const Tree& must = boosted ? tree.must[0].of[0] : tree.must[0];
    if (must.kind == "all") {
      Tree inner;
      inner.kind = "bool";
      inner.filter = tree.filter;
      inner.must_not = tree.must_not;
      Tree scored = wrap("constant", inner);
      if (boosted && tree.must[0].number != 1) scored = wrap("^", scored, tree.must[0].number);
      out.filter.clear();
      out.must_not.clear();
      out.must = {scored};
      return out;
    }
  }

  if (tree.minimum <= 1) {
    out.should.clear();
    for (const Tree& one : tree.should) {
      if (one.kind == "bool" && one.clauses() == one.should.size() && one.minimum <= 1) {
        out.should.insert(out.should.end(), one.should.begin(), one.should.end());
      } else {
        out.should.push_back(one);
      }
    }
    if (out.text() != tree.text()) return out;
  }

  const auto shoulds = static_cast<int64_t>(tree.should.size());
  if (shoulds > 0 && shoulds < tree.minimum) return nothing();
  if (shoulds > 0 && shoulds == tree.minimum) {
    out.must.insert(out.must.end(), tree.should.begin(), tree.should.end());
    out.should.clear();
    out.minimum = 0;
  }
  return out;
}

Tree step(const Tree& tree) {
  if (tree.kind == "bool") return step_bool(tree);
  if (tree.kind == "max") {
    if (tree.of.empty()) return nothing();
    if (tree.of.size() == 1) return tree.of[0];
    Tree out = tree;
    if (tree.number == 1) {
      out = Tree();
      out.kind = "bool";
      out.should = tree.of;
      return out;
    }
    for (Tree& one : out.of) one = step(one);
    return out;
  }
  if (tree.kind == "constant") {
    Tree inner = step(tree.of[0]);
    if (inner.kind == "^" || inner.kind == "constant") {
      inner = Tree(inner.of[0]);
    } else if (inner.kind == "bool") {
      inner = without_scores(inner);
    }
    return inner.kind == "none" ? inner : wrap("constant", inner);
  }
  if (tree.kind == "^") {
    const Tree inner = step(tree.of[0]);
    if (tree.number == 1 || inner.kind == "none") return inner;
    if (inner.kind == "^") return wrap("^", inner.of[0], tree.number * inner.number);
    if (tree.number == 0 && inner.kind != "constant") return wrap("^", wrap("constant", inner), 0);
    return wrap("^", inner, tree.number);
  }
  return tree;
}

}  // namespace

Tree to_tree(const Query& query) {
  const auto each = [](const std::vector<Query>& queries) {
    std::vector<Tree> trees;
    for (const Query& one : queries) trees.push_back(to_tree(one));
    return trees;
  };
  Tree tree;
  switch (query.type) {
    case QueryType::kTerm:
      tree.kind = "term";
      tree.field = query.field;
      tree.word = query.term;
      break;
    case QueryType::kBool:
      tree.kind = "bool";
      tree.minimum = query.minimum_should_match;
      tree.must = each(query.must);
      tree.should = each(query.should);
      tree.filter = each(query.filter);
      tree.must_not = each(query.must_not);
      break;
    case QueryType::kDisMax:
      tree.kind = "max";
      tree.number = query.tie_breaker;
      tree.of = each(query.queries);
      break;
    case QueryType::kConstantScore:
      tree.kind = "constant";
      tree.of = each(query.queries);
      break;
    case QueryType::kRows:
      tree.kind = "rows";
      tree.rows = query.rows;
      tree.scores = query.row_scores;
      tree.word = std::to_string(reinterpret_cast<uintptr_t>(query.rows.get())) + " " +
                  std::to_string(reinterpret_cast<uintptr_t>(query.row_scores.get()));
      break;
    case QueryType::kMatchAll: tree.kind = "all"; break;
    case QueryType::kMatchNone: return nothing();
  }
  return query.boost == 1 ? tree : wrap("^", tree, query.boost);
}

Tree rewritten(Tree tree) {
  for (;;) {
    Tree next = step(tree);
    if (next.text() == tree.text()) return tree;
    tree = std::move(next);
  }
}

}  // namespace lexical_test
