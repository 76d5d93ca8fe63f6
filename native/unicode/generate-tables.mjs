// Generates the tables of the standard tokenizer and of lower-casing, for C++ and TypeScript:
//
//   npm install --no-save @unicode/unicode-12.1.0 && node native/unicode/generate-tables.mjs
//
// The tokenizer is Lucene's StandardTokenizer (9.1 and later): it takes the longest match of eight rules over Unicode 12.1
// properties (UAX #29 word breaking without dictionaries). This script converts code points to classes, the rules to one
// nondeterministic automaton over classes, and that to a minimal deterministic automaton.
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const UNICODE = '12.1.0';
const CODE_POINTS = 0x110000;
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

async function property(name) {
  const { default: ranges } = await import(`@unicode/unicode-${UNICODE}/${name}/ranges.mjs`);
  const set = new Uint8Array(CODE_POINTS);
  // `end` is not part of the range.
  for (const { begin, end } of ranges) set.fill(1, begin, end);
  return set;
}

const only = (...points) => {
  const set = new Uint8Array(CODE_POINTS);
  for (const point of points) {
    if (Array.isArray(point)) set.fill(1, point[0], point[1] + 1);
    else set[point] = 1;
  }
  return set;
};
const union = (...sets) => Uint8Array.from({ length: CODE_POINTS }, (_, c) => (sets.some((set) => set[c]) ? 1 : 0));
const both = (a, b) => a.map((value, c) => value & b[c]);
const without = (a, ...others) => a.map((value, c) => (value && !others.some((set) => set[c]) ? 1 : 0));

const hebrew = await property('Word_Break/Hebrew_Letter');
const letter = union(await property('Word_Break/ALetter'), hebrew);
const singleQuote = await property('Word_Break/Single_Quote');
const midNumLet = await property('Word_Break/MidNumLet');
const regional = await property('Binary_Property/Regional_Indicator');
const modifier = await property('Binary_Property/Emoji_Modifier');
const zwj = only(0x200d);
const absorbed = union(await property('Word_Break/Format'), await property('Word_Break/Extend'), zwj);
const keycapBase = only([0x30, 0x39], 0x23, 0x2a);

/** The sets of code points that the rules use. */
const SETS = {
  letter,
  hebrew,
  hangul: both(letter, await property('Script/Hangul')),
  numeric: union(
    await property('Word_Break/Numeric'),
    both(await property('General_Category/Decimal_Number'), only([0xff00, 0xffef])),
  ),
  katakana: await property('Word_Break/Katakana'),
  extendNumLet: await property('Word_Break/ExtendNumLet'),
  midLetter: union(await property('Word_Break/MidLetter'), midNumLet, singleQuote),
  midNum: union(await property('Word_Break/MidNum'), midNumLet, singleQuote),
  singleQuote,
  doubleQuote: await property('Word_Break/Double_Quote'),
  absorbed,
  absorbedInEmoji: without(absorbed, only(0xfe0e, 0xfe0f)),
  zwj,
  emojiPresentation: only(0xfe0f),
  keycap: only(0x20e3),
  keycapBase,
  tag: only([0xe0020, 0xe007e]),
  tagEnd: only(0xe007f),
  regional,
  pictographic: union(
    await property('Binary_Property/Extended_Pictographic'),
    without(
      await property('Binary_Property/Emoji'),
      regional,
      keycapBase,
      only(0xa9, 0xae, 0x2122, 0x3030, 0x303d),
      modifier,
    ),
  ),
  modifierBase: await property('Binary_Property/Emoji_Modifier_Base'),
  modifier,
  complexContext: await property('Line_Break/Complex_Context'),
  han: await property('Script/Han'),
  hiragana: await property('Script/Hiragana'),
};

// A rule is the name of a set, or ['seq', …], ['or', …], ['star', x], ['plus', x] or ['maybe', x] of rules.
const seq = (...parts) => ['seq', ...parts];
const or = (...parts) => ['or', ...parts];
const star = (part) => ['star', part];
const plus = (part) => ['plus', part];
const maybe = (part) => ['maybe', part];

/** A symbol with the format and combining characters that it absorbs. */
const x = (set) => seq(set, star('absorbed'));
const xEmoji = (set) => seq(set, star('absorbedInEmoji'));

const L = x('letter');
const H = x('hebrew');
const N = x('numeric');
const K = x('katakana');
const U = x('extendNumLet');
const ml = x('midLetter');
const mn = x('midNum');
const q = x('singleQuote');
const dq = x('doubleQuote');

const emoji = or(
  seq(star('zwj'), xEmoji('pictographic'), maybe('emojiPresentation')),
  seq(maybe(seq(star('zwj'), xEmoji('modifierBase'))), xEmoji('modifier')),
);
const word = plus(
  or(seq(H, or(q, seq(dq, H))), seq(N, star(seq(or(star(U), mn), N))), seq(L, star(seq(or(star(U), ml), L)))),
);
const alphanumPart = or(seq(K, star(seq(star(U), K))), word);

/** Of matches of equal length, the earlier rule wins. The numbers of the rules, from 1, are the token types. */
const RULES = [
  [
    'EMOJI',
    or(
      seq(emoji, star(seq('zwj', emoji))),
      seq(emoji, plus('tag'), 'tagEnd'),
      seq(xEmoji('keycapBase'), maybe('emojiPresentation'), xEmoji('keycap')),
      seq(x('regional'), x('regional')),
    ),
  ],
  ['NUM', seq(star(U), N, star(seq(or(star(U), mn), N)), star(U))],
  ['HANGUL', plus(x('hangul'))],
  ['KATAKANA', plus(K)],
  ['ALPHANUM', seq(star(U), alphanumPart, star(seq(plus(U), alphanumPart)), star(U))],
  ['SOUTHEAST_ASIAN', plus(x('complexContext'))],
  ['IDEOGRAPHIC', x('han')],
  ['HIRAGANA', x('hiragana')],
];

// Code points that are in the same sets form a class.
const names = Object.keys(SETS);
const classOfSignature = new Map([['', 0]]);
const classes = new Uint8Array(CODE_POINTS);
for (let c = 0; c < CODE_POINTS; c++) {
  const signature = names.filter((name) => SETS[name][c]).join(' ');
  if (!classOfSignature.has(signature)) classOfSignature.set(signature, classOfSignature.size);
  classes[c] = classOfSignature.get(signature);
}
const classCount = classOfSignature.size;
const classesOf = Object.fromEntries(
  names.map((name) => [
    name,
    [...classOfSignature].filter(([signature]) => signature.split(' ').includes(name)).map(([, number]) => number),
  ]),
);

// Build the nondeterministic automaton with Thompson's construction.
const edges = [];
const empty = [];
const newState = () => {
  edges.push([]);
  empty.push([]);
  return edges.length - 1;
};
function build(part, from, to) {
  if (typeof part === 'string') return void edges[from].push([classesOf[part], to]);
  const [operator, ...parts] = part;
  if (operator === 'seq') {
    let at = from;
    parts.forEach((inner, i) => {
      const next = i === parts.length - 1 ? to : newState();
      build(inner, at, next);
      at = next;
    });
  } else if (operator === 'or') {
    for (const inner of parts) build(inner, from, to);
  } else if (operator === 'maybe') {
    build(parts[0], from, to);
    empty[from].push(to);
  } else {
    const first = newState();
    const last = newState();
    empty[from].push(first);
    build(parts[0], first, last);
    empty[last].push(first, to);
    if (operator === 'star') empty[from].push(to);
  }
}
const start = newState();
const acceptingRule = new Map();
RULES.forEach(([, rule], i) => {
  const first = newState();
  const last = newState();
  empty[start].push(first);
  build(rule, first, last);
  acceptingRule.set(last, i + 1);
});

// Build the deterministic automaton with the subset construction. State 0 is dead, state 1 the start.
function closure(states) {
  const found = new Set(states);
  const open = [...states];
  while (open.length > 0) {
    for (const next of empty[open.pop()]) {
      if (found.has(next)) continue;
      found.add(next);
      open.push(next);
    }
  }
  return [...found].sort((a, b) => a - b);
}
const subsets = [[], closure([start])];
const numberOf = new Map(subsets.map((subset, i) => [subset.join(), i]));
const transitions = [];
for (let i = 0; i < subsets.length; i++) {
  const row = new Array(classCount).fill(0);
  for (let cls = 0; cls < classCount; cls++) {
    const next = closure(
      subsets[i].flatMap((state) => edges[state].filter(([on]) => on.includes(cls)).map(([, to]) => to)),
    );
    const key = next.join();
    if (!numberOf.has(key)) {
      numberOf.set(key, subsets.length);
      subsets.push(next);
    }
    row[cls] = numberOf.get(key);
  }
  transitions.push(row);
}
const accepts = subsets
  .map((subset) => Math.min(...subset.map((state) => acceptingRule.get(state) ?? Number.POSITIVE_INFINITY)))
  .map((rule) => (Number.isFinite(rule) ? rule : 0));

// Minimise it with Moore's algorithm. The dead state remains 0 and the start 1.
let part = accepts.map((rule) => rule);
for (;;) {
  const keys = transitions.map((row, i) => `${part[i]}|${row.map((next) => part[next]).join()}`);
  const fresh = new Map();
  for (const key of keys) if (!fresh.has(key)) fresh.set(key, fresh.size);
  const next = keys.map((key) => fresh.get(key));
  const count = new Set(part).size;
  part = next;
  if (fresh.size === count) break;
}
const stateCount = new Set(part).size;
const table = Array.from({ length: stateCount }, () => []);
const rules = new Array(stateCount).fill(0);
transitions.forEach((row, i) => {
  table[part[i]] = row.map((next) => part[next]);
  rules[part[i]] = accepts[i];
});
if (part[0] !== 0 || part[1] !== 1) throw new Error('the dead state and the start have moved');

// Merge classes with the same transitions in all states.
const columnOf = new Map();
const mergedClass = Array.from({ length: classCount }, (_, cls) => {
  const column = table.map((row) => row[cls]).join();
  if (!columnOf.has(column)) columnOf.set(column, columnOf.size);
  return columnOf.get(column);
});
const merged = columnOf.size;
const columns = [...columnOf.keys()].map((column) => column.split(',').map(Number));
const next = [];
for (let state = 0; state < stateCount; state++) for (let cls = 0; cls < merged; cls++) next.push(columns[cls][state]);

// Two-stage table with 256 code points per block; equal blocks are stored once.
const BLOCK = 256;
const blocks = new Map();
const blockOf = [];
for (let first = 0; first < CODE_POINTS; first += BLOCK) {
  const block = Array.from(classes.subarray(first, first + BLOCK), (cls) => mergedClass[cls]);
  const key = block.join();
  if (!blocks.has(key)) blocks.set(key, { number: blocks.size, block });
  blockOf.push(blocks.get(key).number);
}
const blockClasses = [...blocks.values()].flatMap(({ block }) => block);
if (blocks.size > 256 || merged > 256 || stateCount > 256) throw new Error('a table does not fit into bytes');

// Lower case: the simple mapping of each code point, stored as runs with equal difference and step.
const mappings = [];
for (let c = 0; c < CODE_POINTS; c++) {
  if (c >= 0xd800 && c < 0xe000) continue;
  const lower = [...String.fromCodePoint(c).toLowerCase()];
  // Only U+0130 has a full mapping of two code points. Its simple mapping is "i".
  const to = lower.length === 1 ? lower[0].codePointAt(0) : 0x69;
  if (to !== c) mappings.push([c, to]);
}
const runs = [];
for (const [from, to] of mappings) {
  const last = runs.at(-1);
  const step = last === undefined ? 0 : from - last.last;
  if (last !== undefined && to - from === last.difference && (last.step === 0 ? step <= 2 : step === last.step)) {
    last.step = step;
    last.last = from;
  } else runs.push({ first: from, last: from, step: 0, difference: to - from });
}

const wrapped = (values, perLine = 24) => {
  const lines = [];
  for (let i = 0; i < values.length; i += perLine) lines.push(`    ${values.slice(i, i + perLine).join(', ')},`);
  return lines.join('\n');
};
const cpp = `// Generated by native/unicode/generate-tables.mjs. Do not edit.
// Tokenizer: Unicode ${UNICODE}; lower case: Unicode ${process.versions.unicode}.
#include "unicode_tables.hpp"

namespace trawl::lexical {

const uint8_t kClassBlockOf[${blockOf.length}] = {
${wrapped(blockOf)}
};

const uint8_t kClassBlocks[${blocks.size}][${BLOCK}] = {
${wrapped(blockClasses)}
};

const uint8_t kNextState[${stateCount}][${merged}] = {
${wrapped(next, merged)}
};

const uint8_t kAcceptedRule[${stateCount}] = {
${wrapped(rules)}
};

const LowerCaseRun kLowerCaseRuns[${runs.length}] = {
${runs.map(({ first, last, step, difference }) => `    {${first}, ${last}, ${step || 1}, ${difference}},`).join('\n')}
};

}  // namespace trawl::lexical
`;
const hpp = `// Generated by native/unicode/generate-tables.mjs. Do not edit.
#pragma once

#include <cstdint>

namespace trawl::lexical {

/** Unicode version of the tokenizer's properties, the same as in Lucene 9.1 and later. */
inline constexpr char kTokenizerUnicode[] = "12.1";

/** Class of a code point: kClassBlocks[kClassBlockOf[c >> 8]][c & 255]. Class 0 begins no token. */
extern const uint8_t kClassBlockOf[${blockOf.length}];
extern const uint8_t kClassBlocks[${blocks.size}][${BLOCK}];

/** The automaton: state 0 is dead, state 1 the start. */
extern const uint8_t kNextState[${stateCount}][${merged}];

/** Number of the rule that a state accepts, which is the token's type; 0 if it accepts none. */
extern const uint8_t kAcceptedRule[${stateCount}];

/** The lower case of the code points first, first + step, … last is the code point plus \`difference\`. Sorted by first. */
struct LowerCaseRun {
  uint32_t first;
  uint32_t last;
  uint32_t step;
  int32_t difference;
};
inline constexpr int kLowerCaseRunCount = ${runs.length};
extern const LowerCaseRun kLowerCaseRuns[${runs.length}];

}  // namespace trawl::lexical
`;
const base64 = (values) => Buffer.from(values).toString('base64');
const tables = {
  classCount: merged,
  classBlockOf: base64(blockOf),
  classBlocks: base64(blockClasses),
  nextState: base64(next),
  acceptedRule: base64(rules),
  lowerCaseRuns: runs.flatMap(({ first, last, step, difference }) => [first, last, step || 1, difference]),
};
/** One table a line. */
const json = `{\n${Object.entries(tables)
  .map(([name, value]) => `  "${name}": ${JSON.stringify(value)}`)
  .join(',\n')}\n}\n`;
writeFileSync(join(root, 'native/src/lexical/unicode_tables.cpp'), cpp);
writeFileSync(join(root, 'native/src/lexical/unicode_tables.hpp'), hpp);
writeFileSync(join(root, 'src/engine/lexical/analysis/unicode-tables.json'), json);
process.stdout.write(
  `${merged} classes, ${stateCount} states, ${blocks.size} blocks, ${runs.length} lower-case runs\n`,
);
