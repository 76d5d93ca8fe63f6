/**
 * onnxruntime from 1.29 on reports sessions and machines to Microsoft from Linux and macOS too, and keeps an identifier and
 * a database in the user's cache folder for it. A server of somebody's questions reports to nobody: this is onnxruntime's own
 * full opt-out, unless the variable is set already. It is read when a process first uses onnxruntime, from the environment of
 * the main thread: a worker thread has a copy.
 */
export function disableTelemetry(): void {
  process.env.ORT_DISABLE_TELEMETRY ??= '1';
}
