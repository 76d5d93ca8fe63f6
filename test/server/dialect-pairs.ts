import assert from 'node:assert/strict';
import { test } from 'node:test';
import Value from 'typebox/value';
import { DIALECTS } from '../../src/server/dialects/dispatch.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, postTo } from './build.ts';

/** Rows in the fake retriever's ranking for the query "". */
const ROWS = [
  '{"id":"0","contents":"\\"Paul Walker\\"\\nAn American actor."}',
  '{"id": 1, "title": "Brooklyn Bridge", "text": "A bridge.", "url": "https://example.org/wiki/Brooklyn_Bridge"}',
  '{"id":9007199254740993,"contents":"12 bridges   Bridges with\\ttabs."}',
];
export const SCORES = [0.9, 0.8, 0.7].map(Math.fround);
export const CONTENTS = [
  '"Paul Walker"\nAn American actor.',
  '"Brooklyn Bridge"\nA bridge.',
  '12 bridges   Bridges with\ttabs.',
];
export const WALKER = { id: '0', contents: CONTENTS[0] };
export const BRIDGE = {
  id: 1,
  title: 'Brooklyn Bridge',
  text: 'A bridge.',
  url: 'https://example.org/wiki/Brooklyn_Bridge',
  contents: CONTENTS[1],
};
/** A string, because JSON.parse would round its id beyond 2^53. */
export const BIG = { id: '9007199254740993', contents: CONTENTS[2] };
export const scored = (document: object, rank: number) => ({ document, score: SCORES[rank] });

/** A request and the reply that its client expects. Queries are "", whose ranking is the order of the rows. */
export interface Pair {
  readonly what: string;
  /** The expected dialect. */
  readonly dialect: string;
  /** Names given with --dialect. Default: the dialect, if it is used only then. */
  readonly named?: readonly string[];
  readonly body: unknown;
  /** Absent if only the call of the retriever is checked. */
  readonly reply?: unknown;
  /** Expected k of the call; absent if the retriever is not called. */
  readonly k?: number;
}

/** @param parse reads a reply; by default large ids become texts. */
export function testPairs(
  pairs: readonly Pair[],
  parse = (text: string): unknown => JSON.parse(text.replaceAll(/"id":(9007199254740993)/g, '"id":"$1"')),
): void {
  for (const { what, dialect: name, named, body, reply, k } of pairs) {
    test(what, async (t) => {
      const { path, reply: schema, onlyIfNamed } = DIALECTS.find((dialect) => dialect.name === name)!;
      const retriever = new FakeRetriever({ documents: ROWS });
      const app = build(t, retriever, { dialects: named ?? (onlyIfNamed ? [name] : []) });
      const { status, json, text } = await postTo(app, path, body);
      assert.equal(status, 200, text);
      assert.ok(Value.Check(schema, json), `the reply does not match its schema: ${text}`);
      if (reply !== undefined) assert.deepEqual(parse(text), reply);
      assert.equal(retriever.calls.at(-1)?.k, k);
    });
  }
}
