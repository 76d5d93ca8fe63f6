import { isUtf8 } from 'node:buffer';
import { workerData } from 'node:worker_threads';
import { answerCalls } from '../../src/base/system/thread-calls.ts';
import { formatRows, headerLine, type SplitResult } from './format-rows.ts';
import { openRule } from './open-rule.ts';
import { openPack } from './pack.ts';
import type { BadLine, BatchFacts, PrepareRequest, WorkerSetup } from './prepare-pool.ts';
import type { SplittingRule } from './rules/splitting-rule.ts';
import { parseDocument } from './source-document.ts';

answerCalls(async () => {
  const { rule: ruleOptions, row, compression } = workerData as WorkerSetup;
  const rule = await openRule(ruleOptions);
  const pack = openPack(compression);
  const waiting = new Map<number, readonly SplitResult[]>();
  return (request: PrepareRequest, transfer): BatchFacts | Uint8Array => {
    const { batch } = request;
    if (request.type === 'split') {
      const { results, bad } = splitBatch(rule, row.idFrom === 'doc', request.bytes);
      waiting.set(batch, results);
      const passages = results.reduce((sum, result) => sum + result.passages.length, 0);
      const emptyDocuments = results.filter((result) => result.passages.length === 0).length;
      return { documents: results.length, emptyDocuments, passages, bad };
    }
    const rows = formatRows(rule, row, waiting.get(batch)!, request.start);
    waiting.delete(batch);
    const text = request.header ? headerLine(rule, row) + rows : rows;
    const bytes = text === '' ? new Uint8Array() : pack(new Uint8Array(Buffer.from(text)));
    transfer.push(bytes.buffer);
    return bytes;
  };
});

function splitBatch(
  rule: SplittingRule,
  idNeeded: boolean,
  bytes: Uint8Array,
): { results: readonly SplitResult[]; bad: readonly BadLine[] } {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const results: SplitResult[] = [];
  const bad: BadLine[] = [];
  const isValidUtf8 = isUtf8(buffer);
  for (let start = 0, line = 0; start < buffer.length; line++) {
    const lineEnd = buffer.indexOf(0x0a, start);
    const end = lineEnd === -1 ? buffer.length : lineEnd;
    const piece = buffer.subarray(start, end);
    start = end + 1;
    if (!isValidUtf8 && !isUtf8(piece)) {
      bad.push({ line, reason: 'not valid UTF-8' });
      continue;
    }
    const text = piece.toString('utf8');
    if (/^[ \t\r]*$/.test(text)) continue;
    const parsed = parseDocument(text);
    if (!parsed.ok) {
      bad.push({ line, reason: parsed.reason });
      continue;
    }
    const { document } = parsed;
    if (idNeeded && document.id === null) {
      bad.push({
        line,
        reason: 'the document has no id (wikipedia_id, id, _id or docid), which --id-from doc requires',
      });
      continue;
    }
    const split = rule.split(document);
    if (split.ok) results.push({ document: { ...document, pieces: [] }, passages: split.passages });
    else bad.push({ line, reason: split.reason });
  }
  return { results, bad };
}
