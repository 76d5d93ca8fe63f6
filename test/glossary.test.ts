import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../src/base/package-root.ts';

/**
 * Words that docs/glossary.md replaced. A word with an honest second meaning is rejected only in the phrases that were
 * replaced: an agent has turns, a promise settles, a processor has SIMD lanes.
 */
const REPLACED: readonly RegExp[] = [
  // prefilter
  /\bscreen(ed|s)?[ -](shards?|codes|file|rows?|scan|maker|of the|before)\b/i,
  /\b(make|no|its) screen\b(?! reader)/i,
  // rotation; yield, time slice
  /\borthogonal turn\b/i,
  /\bturn of the (event )?loop\b/i,
  // principal components, projection on the mean
  /\balong(Mean|[ _]mean)\b/i,
  // report, called when, recognised
  /\b(is|are|be|was|were) told\b/i,
  /\btold (when|what|by)\b/i,
  /\bbeforeTelling\b/,
  // resume, continue
  /\bgo(es|ing|ne)? on with\b/i,
  // fix
  /\bmend(s|ed|ing)?\b/i,
  // coalesced queries
  /\bjoined quer(y|ies)\b/i,
  // batch mates, length buckets
  /\b(in|its|other) company\b/i,
  /\btext-lanes\b|\bTextLanes\b|\b(text|query|length|call)[ -]lanes?\b/i,
  // unstarted calls, started calls, slice
  /\b(fresh|served) calls?\b|\b(fresh|served)Calls?\b/,
  /\bpieces? of (a|the|its|each) calls?\b/i,
  // truncation, disconnects
  /\b(client|connection|text|query|quer(y|ies)) cuts\b|\bcuts of (clients|connections|texts|queries)\b/i,
  // principal components, orthogonality error
  /\bprincipal directions?\b|\bdirections of (the|a) (rows?|prefilters?|vectors)\b/i,
  /\b(orthogonal(ity)?|rotation('s)?) defect\b|\bdefect of (the|a) rotation\b/i,
  // resident bytes, working set
  /\bwants? to stay\b/i,
  // input type, option type, change type
  /\bTextKind\b|\bUPDATE_KINDS\b|\b(text|input|queue|option|change|update)Kinds?\b/,
  /\b(input|queue|option|change|update) kinds?\b/i,
  // deleted rows (the JSON field removedRows keeps its name)
  /\bremoved rows?\b/i,
  // messages
  /\bnone of this server\b/i,
  /\bThere is none\b/,
  // «, so many calls» means «therefore many calls».
  /(?<!, )\bso many\b/i,
  /\bsettled one by one\b/i,
  // model-import/, vector-files/, indexer/building/
  /'(\.\.?\/)*(checkpoint|embeddings)\/|\bindexer\/build\//,
];

/** Files in which these words are data or history: this list, recorded texts, and the changelog. */
const EXEMPT =
  /^(docs\/glossary\.md|test\/glossary\.test\.ts|CHANGELOG\.md|LICENSE|package-lock\.json|corpus\/sample\/)|fixtures\//;
const TEXT = /\.(ts|mjs|js|md|cpp|hpp|py|sh|html|css|ya?ml)$/;

const skip = existsSync(join(packageRoot, '.git')) ? false : 'not a git checkout';

test('the words that the glossary replaced do not come back', { skip }, () => {
  const files = execFileSync('git', ['ls-files'], { cwd: packageRoot, encoding: 'utf8' }).split('\n');
  const found: string[] = [];
  for (const file of files.filter((name) => TEXT.test(name) && !EXEMPT.test(name))) {
    const path = join(packageRoot, file);
    // Deleted and not committed yet.
    if (!existsSync(path)) continue;
    for (const [i, line] of readFileSync(path, 'utf8').split('\n').entries()) {
      const word = REPLACED.map((pattern) => pattern.exec(line)?.[0]).find((match) => match !== undefined);
      if (word !== undefined) found.push(`${file}:${i + 1}: «${word}»`);
    }
  }
  assert.deepEqual(found, [], `replaced words; docs/glossary.md has the term to use:\n${found.join('\n')}`);
});

test('the glossary lists each term once, with one sentence', () => {
  const [terms = ''] = readFileSync(join(packageRoot, 'docs', 'glossary.md'), 'utf8').split(
    '\n## Words that were replaced',
  );
  const rows = terms.split('\n').flatMap((line) => {
    const [, term, meaning] = /^\| ([^|]+) \| ([^|]+) \|$/.exec(line) ?? [];
    if (term === undefined || meaning === undefined || term === 'term' || term.startsWith('---')) return [];
    return [{ term, meaning }];
  });
  assert.ok(rows.length > 50);
  assert.equal(new Set(rows.map(({ term }) => term)).size, rows.length);
  for (const { term, meaning } of rows) {
    assert.match(meaning, /^[A-Z].*\.$/, term);
    assert.doesNotMatch(meaning, /\. [A-Z]/, term);
  }
});
