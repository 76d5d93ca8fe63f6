import { parse } from 'csv-parse/sync';

/** Rows of a table of comma- or tab-separated values (RFC 4180: fields may be quoted and then have line ends). Blank lines are left out. */
export function delimitedRows(text: string, delimiter: ',' | '\t'): string[][] {
  return parse(text, {
    delimiter,
    record_delimiter: ['\r\n', '\n', '\r'],
    bom: true,
    relax_column_count: true,
    skip_empty_lines: true,
    // Some tables have a single quote character within a field, such as 5" in a question.
    relax_quotes: true,
  });
}
