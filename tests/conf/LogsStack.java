/** Log an error of Spark's whose stack goes into the file of stacks, and one that goes to standard error. */
public class LogsStack {
    public static void main(String[] arguments) {
        org.apache.logging.log4j.LogManager.getLogger("org.apache.spark.executor.Executor")
            .error("into the file", new RuntimeException("with a stack"));
        org.apache.logging.log4j.LogManager.getLogger("other").error("to standard error");
    }
}
