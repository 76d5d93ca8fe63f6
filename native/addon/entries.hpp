// The exported functions, each with its signature in JavaScript. Promises are settled on the environment's thread. `id`
// names a call for cancel() and must differ from the ids of all running calls. src/engine/native is the only caller.
#pragma once
#include <napi.h>

namespace trawl_addon {

// isas() -> [{name, available, reason}], fastest first
Napi::Value isas(const Napi::CallbackInfo& info);
// selectIsa(name) -> the name chosen; '' chooses the fastest available
Napi::Value select_isa(const Napi::CallbackInfo& info);
// chosenIsas(name) -> {few, many, codesFrom, prefiltersFrom}; with '' and AMX the first call tries both, about 50 ms
Napi::Value chosen_isas(const Napi::CallbackInfo& info);
// threads() -> number of the engine's threads, 0 before setThreads
Napi::Value threads(const Napi::CallbackInfo& info);
// setThreads(n) -> threads(); n from 1 to 4096. The threads start with the first job.
Napi::Value set_threads(const Napi::CallbackInfo& info);
// measurePeaks(id, bytes) -> Promise<{readBytesPerS, int8ProductsPerS, float32ProductsPerS}>, 0 for a rate that this processor
// is not measured for
Napi::Value measure_peaks(const Napi::CallbackInfo& info);
// cancel(id): rejects the promise of the call with CANCELLED soon
Napi::Value cancel(const Napi::CallbackInfo& info);

// openIndex(id, {metric, dimension, shards: [{rows, dtype, segments, codes?, prefilter?}], liveRows?}) -> Promise<handle>; maps the files.
// What reads mapped files fails with FILE_CHANGED if one of them is no longer what it was when it was opened
Napi::Value open_index(const Napi::CallbackInfo& info);
// indexFacts(handle) -> {rows, residentBytes, touchedBytes, mappedBytes, sampledPrefilters}
Napi::Value index_facts(const Napi::CallbackInfo& info);
// closeIndex(handle): frees the index after the searches that run on it
Napi::Value close_index(const Napi::CallbackInfo& info);
// uploadIndex(id, handle, device, library) -> Promise<{name, cuda, bytes}>: copies the codes to an NVIDIA GPU, for all later searches.
// Call it once, before the first search. library: path of the driver's library; '' uses the system's
Napi::Value upload_index(const Napi::CallbackInfo& info);
// gpus(library) -> {cuda, gpus: [{name, freeBytes, totalBytes, problem}]} of this machine, numbered from 0; `problem` says why one
// cannot be used, or is ''
Napi::Value gpus(const Napi::CallbackInfo& info);
// search(id, handle, {queries, count, k, isa, filter?}) -> Promise<{counts, rows, scores, rescored, fullScans, gpuFailure, overflows?}>
// rows and scores: min(k, rows of the index) places for each query. gpuFailure: the error after which searches run on the CPU, or ''.
// overflows: for each query a row whose score does not fit float32, or -1; absent if all fit
Napi::Value search(const Napi::CallbackInfo& info);

// createCodes(path, metric, dimension) -> handle
Napi::Value create_codes(const Napi::CallbackInfo& info);
// appendCodes(id, handle, rows, count) -> Promise<rows so far>; an error while another call with the handle runs
Napi::Value append_codes(const Napi::CallbackInfo& info);
// finishCodes(id, handle) -> Promise<rows>, after the file is flushed to disk
Napi::Value finish_codes(const Napi::CallbackInfo& info);
// closeCodes(handle): closes the file without finishing it
Napi::Value close_codes(const Napi::CallbackInfo& info);
// makePrefilter(id, path, codesPath, {rows, dtype, segments}, dimension, components) -> Promise<{components, reason}>;
// components 0: the engine chooses. 0 in the result: no file was written
Napi::Value make_prefilter(const Napi::CallbackInfo& info);

// verifyCodes(id, codesPath, {rows, dtype, segments}, dimension) -> Promise<{rowsChecked, badRow, reason}>
Napi::Value verify_codes(const Napi::CallbackInfo& info);
// verifyPrefilter(id, path, codesPath, {rows, dtype, segments}, dimension) -> Promise<{rowsChecked, badRow, reason}>
Napi::Value verify_prefilter(const Napi::CallbackInfo& info);

// analyse(analyser, text) -> terms; analyser: 'english', 'standard', 'whitespace' or 'cjk'
Napi::Value analyse(const Napi::CallbackInfo& info);
// openLexical(id, {shards: [path], deleted?: path, liveRows?}) -> Promise<handle>
Napi::Value open_lexical(const Napi::CallbackInfo& info);
// lexicalFacts(handle) -> {rows, documents, tokens, analyser, mappedBytes}
Napi::Value lexical_facts(const Napi::CallbackInfo& info);
// closeLexical(handle): frees the index after the searches that run on it
Napi::Value close_lexical(const Napi::CallbackInfo& info);
// searchLexical(id, handle, {queries, k, parameters: {k1, b, k1Factor}, filter?})
//   -> Promise<{counts, rows, scores, terms, postings, postingsRead}>
Napi::Value search_lexical(const Napi::CallbackInfo& info);
// searchLexicalFields(id, [{name, index: handle}], {queries, k, parameters, filter?, count?, minScore?}) -> as searchLexical, and totals if
// `count` is not 0. The queries are trees over the fields (src/engine/lexical/lexical-query.ts); the first handle has the deleted rows
Napi::Value search_lexical_fields(const Napi::CallbackInfo& info);
// explainLexical(id, handle, {query, rows, parameters, weight, maxTerms})
//   -> Promise<{names, boosts, documentFrequencies, counts, terms, scores}>
Napi::Value explain_lexical(const Napi::CallbackInfo& info);
// createLexical(path, analyser) -> handle
Napi::Value create_lexical(const Napi::CallbackInfo& info);
// appendLexical(id, handle, texts, ends) -> Promise<rows so far>; an error while another call with the handle runs
Napi::Value append_lexical(const Napi::CallbackInfo& info);
// finishLexical(id, handle) -> Promise<{rows, documents, tokens, terms, postings}>, after the file is flushed to disk
Napi::Value finish_lexical(const Napi::CallbackInfo& info);
// closeLexicalWriter(handle): closes the file without finishing it
Napi::Value close_lexical_writer(const Napi::CallbackInfo& info);
// verifyLexical(id, path) -> Promise<message of the first problem, or null>
Napi::Value verify_lexical(const Napi::CallbackInfo& info);

// openColumn(id, [path], type) -> Promise<handle>: maps the files of a column, one for each shard. Type: 'string', 'number',
// 'boolean' or 'date'
Napi::Value open_column(const Napi::CallbackInfo& info);
// closeColumn(handle): frees the column after the evaluations that use it
Napi::Value close_column(const Napi::CallbackInfo& info);
// filterRows(id, [handle], test, rows) -> Promise<bitmap of the rows that pass>. The test is a RowPredicate of
// src/engine/filter/bind-filter.ts; `rows`: how many the index has
Napi::Value filter_rows(const Napi::CallbackInfo& info);

// encoderIsas(precision) -> [{name, available, reason}] of the matrix products of encoders, fastest first
Napi::Value encoder_isas(const Napi::CallbackInfo& info);
// openBert(path, isa) -> handle; maps the weights. '' chooses the fastest instruction set
Napi::Value open_bert(const Napi::CallbackInfo& info);
// bertFacts(handle) -> {hidden, isa, precision}
Napi::Value bert_facts(const Napi::CallbackInfo& info);
// runBert(handle, {ids, types?, texts, length, threads}) -> Float32Array of texts x length x hidden; blocks the calling thread, which is
// one of `threads`
Napi::Value run_bert(const Napi::CallbackInfo& info);
// closeBert(handle)
Napi::Value close_bert(const Napi::CallbackInfo& info);

// watchFile(path) -> handle of a file that another library reads, whose mappings exist already
Napi::Value watch_file(const Napi::CallbackInfo& info);
// requireUnchanged(handle): throws FILE_CHANGED
Napi::Value require_unchanged(const Napi::CallbackInfo& info);
// closeWatch(handle)
Napi::Value close_watch(const Napi::CallbackInfo& info);

// firstNotHalf(values) -> index of the first value that float16 cannot represent exactly, or the length
Napi::Value first_not_f16(const Napi::CallbackInfo& info);
// toHalves(values) -> Uint16Array of float16; every value must be exact in float16
Napi::Value to_f16(const Napi::CallbackInfo& info);

}  // namespace trawl_addon
