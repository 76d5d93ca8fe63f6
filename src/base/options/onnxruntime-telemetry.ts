/**
 * Switches onnxruntime's telemetry off, unless the variable is already set. Since version 1.29, onnxruntime reports sessions and
 * machines to Microsoft on Linux and macOS too. It reads the variable when it is first used in a process, from the environment of
 * the main thread (worker threads have a copy), so call this function on the main thread before onnxruntime is loaded.
 */
export function disableTelemetry(): void {
  process.env.ORT_DISABLE_TELEMETRY ??= '1';
}
