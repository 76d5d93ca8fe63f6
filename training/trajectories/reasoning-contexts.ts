/** What precedes the agent's own text in a prompt of Qwen's chat template, which Agentic-R uses. */
export const QWEN_ASSISTANT_MARKER = '<|im_start|>assistant\n';

const SEARCH_END = '</search>';

/**
 * The agent's text up to and with each of its searches, passages that it has read included: what Agentic-R calls
 * `reasoning_context`. The instructions in front of the marker may themselves show search tags, so they are left out. Undefined if the
 * marker is not in the prompt.
 */
export function reasoningContexts(prompt: string, marker: string): string[] | undefined {
  const at = prompt.indexOf(marker);
  if (at === -1) return undefined;
  const text = prompt.slice(at + marker.length);
  const contexts: string[] = [];
  for (let end = text.indexOf(SEARCH_END); end !== -1; end = text.indexOf(SEARCH_END, end + 1)) {
    contexts.push(text.slice(0, end + SEARCH_END.length));
  }
  return contexts;
}
