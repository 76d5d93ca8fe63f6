import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { dateFormats, parseDateMath } from '../../../src/server/elasticsearch/query/date-math.ts';

const NOW = Date.parse('2024-02-29T13:45:30.250Z');

function read(text: string, roundUp = false, format = 'strict_date_optional_time||epoch_millis'): string | undefined {
  const found = parseDateMath(text, { now: NOW, roundUp, formats: dateFormats(format)! });
  return found === undefined ? undefined : new Date(found).toISOString();
}

test('a date that lacks parts is its beginning, or the end of the day, hour, minute or second when rounded up', () => {
  for (const [text, down, up] of [
    ['2020', '2020-01-01T00:00:00.000Z', '2020-01-01T23:59:59.999Z'],
    ['2020-02', '2020-02-01T00:00:00.000Z', '2020-02-01T23:59:59.999Z'],
    ['2020-02-29', '2020-02-29T00:00:00.000Z', '2020-02-29T23:59:59.999Z'],
    ['2020-02-29T07', '2020-02-29T07:00:00.000Z', '2020-02-29T07:59:59.999Z'],
    ['2020-02-29T07:08', '2020-02-29T07:08:00.000Z', '2020-02-29T07:08:59.999Z'],
    ['2020-02-29T07:08:09', '2020-02-29T07:08:09.000Z', '2020-02-29T07:08:09.999Z'],
    ['2020-02-29T07:08:09.5', '2020-02-29T07:08:09.500Z', '2020-02-29T07:08:09.500Z'],
    ['2020-02-29T07:08:09.123456+02:00', '2020-02-29T05:08:09.123Z', '2020-02-29T05:08:09.123Z'],
    ['2020-02-29T07-0130', '2020-02-29T08:30:00.000Z', '2020-02-29T09:29:59.999Z'],
    ['1582934889123', '2020-02-29T00:08:09.123Z', '2020-02-29T00:08:09.123Z'],
    ['0001-01-01', '0001-01-01T00:00:00.000Z', '0001-01-01T23:59:59.999Z'],
  ] as const) {
    assert.deepEqual([read(text), read(text, true)], [down, up], text);
  }
  assert.equal(read('1582934889', false, 'epoch_second'), '2020-02-29T00:08:09.000Z');
  assert.equal(read('2020', false, 'epoch_millis'), '1970-01-01T00:00:02.020Z');
});

test('date math adds and rounds in its order', () => {
  for (const [text, down, up = down] of [
    ['now', '2024-02-29T13:45:30.250Z'],
    ['now-1d', '2024-02-28T13:45:30.250Z'],
    ['now-1d/d', '2024-02-28T00:00:00.000Z', '2024-02-28T23:59:59.999Z'],
    ['now/M', '2024-02-01T00:00:00.000Z', '2024-02-29T23:59:59.999Z'],
    ['now/w', '2024-02-26T00:00:00.000Z', '2024-03-03T23:59:59.999Z'],
    ['now-1y', '2023-02-28T13:45:30.250Z'],
    ['now+h', '2024-02-29T14:45:30.250Z'],
    ['now/H+30m', '2024-02-29T13:30:00.000Z', '2024-02-29T14:29:59.999Z'],
    ['2020-01-31||+1M', '2020-02-29T00:00:00.000Z'],
    ['2020-01-31||+1M/d', '2020-02-29T00:00:00.000Z', '2020-02-29T23:59:59.999Z'],
    ['2020||/y', '2020-01-01T00:00:00.000Z', '2020-12-31T23:59:59.999Z'],
    ['1969-12-31T23:59:59||/m', '1969-12-31T23:59:00.000Z', '1969-12-31T23:59:59.999Z'],
  ] as const) {
    assert.deepEqual([read(text), read(text, true)], [down, up], text);
  }
});

test('other texts are no dates, whatever they are', () => {
  for (const text of [
    '',
    'yesterday',
    '2020-13',
    '2020-02-30',
    '2021-02-29',
    '20-1-1',
    '2020-01-01T24',
    '2020-01-01T10:61',
    'now-1',
    'now-1x',
    'now1d',
    '2020||+1d||/d',
    '2020-01-01 10:00',
  ]) {
    assert.equal(read(text), undefined, text);
  }
  assert.equal(dateFormats('dd.MM.yyyy'), undefined);
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.stringMatching(/^(now|2020-01-31\|\|)?([+-]\d*[yMwdhms]|\/[yMwd]){0,4}$/)),
      (text) => {
        const found = parseDateMath(text, { now: NOW, roundUp: true, formats: ['date', 'epoch_millis'] });
        assert.ok(found === undefined || Number.isFinite(found), text);
      },
    ),
  );
});
