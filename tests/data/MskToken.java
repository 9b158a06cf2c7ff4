import java.util.List;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.AppConfigurationEntry.LoginModuleControlFlag;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;
import software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler;

/** Prints the token that AWS's own library makes of the credentials in the environment: see msk_token.json. */
public class MskToken {
    public static void main(String[] arguments) throws Exception {
        var module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule";
        var entry = new AppConfigurationEntry(module, LoginModuleControlFlag.REQUIRED, Map.of());
        var handler = new IAMOAuthBearerLoginCallbackHandler();
        handler.configure(Map.of(), "OAUTHBEARER", List.of(entry));
        var callback = new OAuthBearerTokenCallback();
        handler.handle(new Callback[] {callback});
        System.out.println(callback.token().value());
    }
}
