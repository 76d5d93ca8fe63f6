import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseDate } from '../../../src/engine/filter/date.ts';

test('a day is its midnight in UTC; a time may have seconds, a fraction and an offset', () => {
  for (const [text, iso] of [
    ['2020-01-31', '2020-01-31T00:00:00.000Z'],
    ['0000-01-01', '0000-01-01T00:00:00.000Z'],
    ['0099-12-31', '0099-12-31T00:00:00.000Z'],
    ['2020-02-29T12:30', '2020-02-29T12:30:00.000Z'],
    ['2020-02-29 12:30:05', '2020-02-29T12:30:05.000Z'],
    ['2020-02-29T12:30:05.1Z', '2020-02-29T12:30:05.100Z'],
    ['2020-02-29T12:30:05.123999Z', '2020-02-29T12:30:05.123Z'],
    ['2020-02-29T00:30:00+02:00', '2020-02-28T22:30:00.000Z'],
    ['2020-02-29T23:30:00-01:30', '2020-03-01T01:00:00.000Z'],
  ] as const) {
    assert.equal(parseDate(text), Date.parse(iso), text);
  }
});

test('other texts and days that do not exist are no dates', () => {
  for (const text of [
    '',
    '2020',
    '2020-1-31',
    '31.1.2020',
    '2020-02-30',
    '2019-02-29',
    '1900-02-29',
    '2020-00-01',
    '2020-13-01',
    '2020-01-00',
    '2020-01-01T24:00',
    '2020-01-01T12:60',
    '2020-01-01T12:00:60Z',
    '2020-01-01T12:00:00z',
    '2020-01-01T12:00:00+24:00',
    '2020-01-01Z',
    ' 2020-01-01',
    '20200101',
  ]) {
    assert.equal(parseDate(text), undefined, text);
  }
});

test('every time that JavaScript writes is read as the same time', () => {
  const min = new Date('0000-01-01T00:00:00Z');
  fc.assert(
    fc.property(fc.date({ min, max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true }), (date) => {
      assert.equal(parseDate(date.toISOString()), date.getTime());
    }),
  );
});
